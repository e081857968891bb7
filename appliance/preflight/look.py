"""The rules over this machine as it is, for whoever shows findings beside what runs."""

from pathlib import Path

from appliance.documents import RuleResult


def look(state_dir: Path) -> list[RuleResult]:
    """The results with findings for this machine, its engine and the plan that runs in `state_dir`. Takes seconds."""
    from appliance.preflight.catalogue import catalogue
    from appliance.preflight.evaluate import evaluate
    from appliance.preflight.facts import Facts
    from appliance.recon.engine import engine_report
    from appliance.recon.machine import machine_report
    from appliance.supervisor.state import StateDirectory

    state = StateDirectory(state_dir).read()
    facts = Facts(machine=machine_report(), engine=engine_report(), plan=state.plan if state else None)
    return [result for result in evaluate(catalogue().values(), facts) if result.findings]
