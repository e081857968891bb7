"""One host: start the switch there, follow its journal, confirm over a new connection, and say what came of it."""

import getpass
import secrets
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from appliance.deploy import store
from appliance.deploy.host.kind import PROGRAM
from appliance.deploy.look import history
from appliance.deploy.remote import Remote
from appliance.documents import GoldenRecord, Plan
from appliance.documents.deploy import DeployJournal, DeployRequest, GateLimits, StoppedService
from appliance.errors import ApplianceError, CheckFailed, InputError, ProbeIncomplete

TRY_AGAIN_S = 1.0
RECOVERY_LIMIT_S = 7200.0


class Terms(NamedTuple):
    """What a deploy asks of the host."""

    stop: list[StoppedService]
    gate: GateLimits
    golden: GoldenRecord | None
    confirm_s: float


def request_for(generation: str, plan: Plan, terms: Terms, reason: str = "deploy") -> DeployRequest:
    """A request with a new id, in the name of who runs this."""
    return DeployRequest(
        id=f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        generation=generation,
        requested_by=f"{getpass.getuser()}@{socket.gethostname()}",
        plan_identity=plan.identity(),
        stop=terms.stop,
        gate=terms.gate,
        golden=terms.golden,
        confirm_s=terms.confirm_s,
        reason=reason,
    )


def switch(remote: Remote, request: DeployRequest, say: Callable[[str], None]) -> DeployJournal:
    """Switch the host and return the journal of the deploy that ended, well or not.

    Raises CheckFailed where the host refuses, ProbeIncomplete where the connection stays lost: then the host goes back.
    """
    program = f"{request.generation}/{PROGRAM}"
    remote.root([program, "deploy-host", "start"], request.to_json())
    lost_at: float | None = None
    said, recovered = 0, False
    while True:
        try:
            for line in remote.lines([program, "deploy-host", "follow", request.id]):
                journal = DeployJournal.parse(line, f"journal of {remote.host}")
                lost_at = None
                for event in journal.events[said:]:
                    say(f"{event.step}: {event.text}")
                said = len(journal.events)
                if journal.ended():
                    return journal
                if journal.step == "waiting":
                    confirm(remote, program, request.id, say)
            if recovered:
                raise CheckFailed(f"{remote.host}: it has no journal of {request.id} any more")
            say("the switch was cut off there; cleaning up")
            remote.root([program, "deploy-host", "recover"], limit_s=RECOVERY_LIMIT_S)
            recovered = True
        except ProbeIncomplete as error:
            lost_at = lost_at or time.monotonic()
            if time.monotonic() - lost_at > request.confirm_s:
                raise ProbeIncomplete(f"{error}; without a confirmation the host goes back by itself") from None
            say(f"connection lost, trying again: {error}")
            time.sleep(TRY_AGAIN_S)


def confirm(remote: Remote, program: str, id: str, say: Callable[[str], None]) -> None:
    """Confirm over a connection made for it. What fails is said: the host goes back if it stays like this."""
    try:
        remote.root([program, "deploy-host", "confirm", id], alone=True)
    except ApplianceError as error:
        say(f"not confirmed: {error}")


def former_of(remote: Remote) -> tuple[str, Plan]:
    """The generation that was kept before the one that runs, and its plan. Raises InputError where there is none."""
    standing = remote.standing()
    records = [r for r in history(remote, standing).records if r.outcome == "committed"]
    current = next((r for r in reversed(records) if r.generation == standing.running), None)
    former = current.former if current else None
    if former is None:
        raise InputError(
            f"{remote.host}: no generation was deployed before {standing.running or 'this'}; nothing to go back to"
        )
    done = remote.call(["cat", f"{former}/{store.PLAN}"])
    if done.returncode != 0:
        raise InputError(f"{remote.host}: {former} has no appliance any more; expected it in the store there")
    return former, Plan.parse(done.stdout, f"{remote.host}:{former}/{store.PLAN}")


def required(journal: DeployJournal, host: str) -> None:
    """Raise CheckFailed that says what did not hold, unless the deploy was kept."""
    if journal.step == "committed":
        return
    failure = journal.failure
    lines = [f"{host}: {journal.step}. {failure.check} did not hold: {failure.evidence}"]
    for check in journal.restored:
        lines.append(f"  {'again' if check.passed else 'NOT again'}: {check.name}: {check.evidence}")
    for unit, log in failure.logs.items():
        lines += [f"  {unit}: {line}" for line in log[-8:]]
    raise CheckFailed("\n".join(lines))
