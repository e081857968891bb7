"""Look before a deploy: what it would change on a host, and what preflight says of it."""

import re
from collections.abc import Callable

from appliance.deploy import store
from appliance.deploy.host.kind import PLAN, PROGRAM, UNITS
from appliance.deploy.remote import Remote, Standing
from appliance.documents import Plan
from appliance.documents.deploy import DeployChanges, DeployHistory, StoppedService
from appliance.errors import InputError
from appliance.preflight.catalogue import catalogue
from appliance.preflight.evaluate import evaluate
from appliance.preflight.facts import Facts
from appliance.recon.machine.remote.ssh import report_from_host

OWN_NAME = re.compile(r"/nix/store/[0-9a-z]{32}-")
ROOM_BYTES = 2**30
"""Left free in the host's store beside what is copied."""


def changes(
    remote: Remote,
    standing: Standing,
    generation: str,
    plan: Plan,
    stop: list[StoppedService],
    skips: dict[str, str],
    say: Callable[[str], None],
) -> DeployChanges:
    """What the deploy of `generation` would change. Raises InputError, CheckFailed, ProbeIncomplete."""
    parts = store.closure(generation)
    missing = store.missing_on(remote, parts)
    copied = sum(part.bytes for part in missing)
    former = former_plan(remote, standing.running)
    report = report_from_host(remote.host, [], say=say)
    named = {service.unit for service in stop}
    active = [service.name for service in report.services or [] if service.active == "active"]
    problems = preflight(report, plan, former, skips)
    free = standing.store_free_bytes
    if free is not None and copied + ROOM_BYTES > free:
        problems.append(
            f"{(copied + ROOM_BYTES) / 1e9:.1f} GB are needed in the store there (1 GiB of it stays free), "
            f"{free / 1e9:.1f} GB are free"
        )
    last = history(remote, standing).last_good(plan.model.served_name, plan.model.path)
    return DeployChanges(
        host=remote.host,
        host_kind=standing.kind,
        running=standing.running,
        generation=generation,
        units=unit_changes(remote, standing.running, generation),
        arguments=plan_changes(former, plan),
        closure_bytes=sum(part.bytes for part in parts),
        copy_bytes=copied,
        store_free_bytes=free,
        stops=sorted(named),
        may_hold_gpus=sorted(name for name in active if name not in named and not name.startswith("sglang-")),
        down_s=last.down_s if last else None,
        down_at_most_s=plan.start_timeout_s,
        problems=problems,
    )


def preflight(report, plan: Plan, former: Plan | None, skips: dict[str, str]) -> list[str]:
    """Findings that are errors, a line each. What the former generation listens on will be free by then."""
    if former is not None and report.listeners is not None:
        leaving = {port for _, port in former.listeners()}
        report = report.model_copy(update={"listeners": [one for one in report.listeners if one.port not in leaving]})
    results = evaluate(list(catalogue().values()), Facts(machine=report, plan=plan), skips)
    return [
        f"{result.rule}: {finding.evidence} ({finding.fix})"
        for result in results
        for finding in result.findings
        if finding.severity == "error"
    ]


def former_plan(remote: Remote, running: str | None) -> Plan | None:
    """The plan that the host runs now; None where it has none, or one of another release."""
    if running is None:
        return None
    done = remote.call(["cat", f"{running}/{PLAN}"])
    try:
        return Plan.parse(done.stdout, f"{remote.host}:{running}/{PLAN}") if done.returncode == 0 else None
    except InputError:
        return None


def unit_changes(remote: Remote, running: str | None, generation: str) -> dict[str, str]:
    """Which units are new, changed or removed. A unit differs when more than the generation's own path does."""
    new = {name: plain(text, generation) for name, text in store.texts_in(generation).items()}
    old = {name: plain(text, running) for name, text in remote_texts(remote, running).items()}
    found = {name: "new" for name in new.keys() - old.keys()} | {name: "removed" for name in old.keys() - new.keys()}
    return dict(sorted((found | {n: "changed" for n in new.keys() & old.keys() if new[n] != old[n]}).items()))


def remote_texts(remote: Remote, generation: str | None) -> dict[str, str]:
    """The units of a generation on the host, by name."""
    if generation is None:
        return {}
    script = f"cd {generation}/{UNITS} && for unit in sglang-*; do printf '\\0%s\\n' $unit; cat $unit; done"
    parts = remote.call(["sh", "-c", script]).stdout.split("\0")[1:]
    return dict(part.split("\n", 1) for part in parts)


def plain(text: str, generation: str) -> str:
    return text.replace(generation, "GENERATION")


def plan_changes(former: Plan | None, plan: Plan) -> list[str]:
    """What differs between two plans, a line each; reasons and costs, which decide nothing, are left out."""
    if former is None:
        return []
    sides = [flat(one.model_dump(mode="json", exclude={"reasons", "topologies"})) for one in (former, plan)]
    lines = []
    for key in sorted(sides[0].keys() | sides[1].keys()):
        old, new = (side.get(key, "nothing") for side in sides)
        if old != new:
            lines.append(f"{key}: {old} -> {new}")
    return lines


def flat(value, key: str = "") -> dict[str, str]:
    """Leaves of a document by their path; workers by name, and arguments as one text."""
    if isinstance(value, dict):
        return {
            k: v for name, part in value.items() if name != "reasons" for k, v in flat(part, f"{key}.{name}").items()
        }
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {k: v for part in value for k, v in flat(part, f"{key}.{part.get('name', '')}").items()}
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return {key.removeprefix("."): text}


def history(remote: Remote, standing: Standing) -> DeployHistory:
    """The deploys of a host; none where nothing was deployed."""
    if standing.running is None:
        return DeployHistory(records=[])
    words = [f"{standing.running}/{PROGRAM}", "deploy-host", "history"]
    done = remote.call(remote.as_root(words))
    if done.returncode != 0:  # a NixOS host that has not had the appliance yet
        return DeployHistory(records=[])
    return DeployHistory.parse(done.stdout, f"history of {remote.host}")
