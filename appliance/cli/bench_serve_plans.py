"""The plans that `bench serve` measures: given ones, or one of each topology that fits this machine."""

from pathlib import Path

from appliance.documents import BenchRecord, Plan, Recon
from appliance.errors import ApplianceError, CheckFailed, InputError

TOPOLOGIES = ("pd", "replicas", "single")


def plans_of(
    model: str | None,
    plan_files: tuple[Path, ...],
    topologies: tuple[str, ...],
    base_port: int,
    earlier: BenchRecord | None,
) -> tuple[dict[str, Plan], Recon]:
    """A plan of each topology, and the reports. A run that is resumed has its plans already. Raises ApplianceError."""
    from appliance.cli.output import say, step
    from appliance.plan.gpu import Wishes
    from appliance.plan.make import make_plan
    from appliance.plan.ports import PortRange
    from appliance.recon.engine import engine_report
    from appliance.recon.machine import machine_report
    from appliance.recon.model import model_report

    given = [Plan.read(path) for path in plan_files]
    if earlier is not None:
        require_recorded(model, topologies, earlier)
        given = [benched.plan for benched in earlier.topologies.values()]
    twice = [plan.topology for plan in given if [other.topology for other in given].count(plan.topology) > 1]
    if twice:
        raise InputError(f"--plan: topology {twice[0]} twice; expected each topology once")
    paths = {plan.model.path for plan in given}
    if len(paths) > 1:
        raise InputError(f"--plan: models {' and '.join(sorted(paths))}; expected one model for all topologies")
    if model is None and not paths:
        raise InputError("no model to measure with; expected --model REF or --plan PLAN")
    with step() as shown:
        shown.update("looking at the machine, the engine and the model")
        found = Recon(
            machine=machine_report(), engine=engine_report(), model=model_report(Path(paths.pop() if paths else model))
        )
    if given:
        return {plan.topology: plan for plan in given}, found
    plans, refused = {}, []
    for topology in topologies or TOPOLOGIES:
        try:
            plans[topology] = make_plan(found, Wishes(topology=topology, ports=PortRange(base_port)))
        except ApplianceError as error:
            if topologies:
                raise
            refused.append(f"{topology}: {error}")
            say(f"left out: {topology}: {error}")
    if not plans:
        raise CheckFailed(f"no topology fits: {'; '.join(refused)}")
    return plans, found


def require_recorded(model: str | None, topologies: tuple[str, ...], earlier: BenchRecord) -> None:
    """Raise InputError where a run that is resumed is asked for another model or other topologies than its record's."""
    recorded = earlier.model.path
    if model is not None and model != recorded and Path(model).resolve() != Path(recorded).resolve():
        raise InputError(f"--model {model}: the record is of {recorded}; expected the same, or no --model")
    if topologies and set(topologies) != set(earlier.asked.topologies):
        wanted, there = ", ".join(topologies), ", ".join(earlier.asked.topologies)
        raise InputError(f"--topology {wanted}: the record is of {there}; expected the same, or no --topology")


def context_of(plans: dict[str, Plan], found: Recon) -> int | None:
    """Tokens of the longest request that every plan takes; None where nothing says so."""
    lengths = [found.model.context_length_scaled or found.model.context_length]
    for plan in plans.values():
        for worker in plan.workers:
            for flag in ("--context-length", "--max-total-tokens"):
                if flag in worker.args:
                    lengths.append(int(worker.args[worker.args.index(flag) + 1]))
    known = [length for length in lengths if length]
    return min(known) if known else None
