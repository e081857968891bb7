"""The switch: forward step by step, each written down before it is taken, and back from wherever it stopped."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from appliance.deploy.host.kind import HostKind, plan_of
from appliance.deploy.host.state import HostState
from appliance.documents import Check
from appliance.documents.deploy import (
    DeployEvent,
    DeployFailure,
    DeployJournal,
    DeployRecord,
    DeployRequest,
    DeployStep,
    GateResult,
    RememberedService,
)
from appliance.errors import CheckFailed

LOOK_EVERY_S = 0.2
DRAIN_S = 90.0


class Interrupted(BaseException):
    """The unit of the switch is stopped."""


class NotHeld(CheckFailed):
    """A check of the gate does not hold. `units` are those whose logs may say why."""

    def __init__(self, check: Check, units: list[str], checks: list[Check], measured: GateResult):
        super().__init__(f"{check.name}: {check.evidence}")
        self.check, self.units, self.checks, self.measured = check, units, checks, measured


class Gate(Protocol):
    """What decides whether a generation is kept, and whether one that is back serves."""

    def pass_through(self, request: DeployRequest, golden, last_speed, say) -> tuple[list[Check], GateResult]:
        """The checks, which all hold, and what was measured. Raises NotHeld at the first that does not."""

    def serves(self, generation: str) -> list[Check]:
        """Whether the appliance in `generation` answers, waiting for its engines to start."""

    def service_answers(self, service: RememberedService) -> Check:
        """Whether a service that was started again is well."""


class Switch:
    """One deploy on this host. `services` is a Systemctl; `say` is told what happens."""

    def __init__(self, state: HostState, kind: HostKind, services, gate: Gate, say: Callable[[str], None] = print):
        self._state, self._kind, self._services, self._gate, self._say = state, kind, services, gate, say
        self._journal: DeployJournal | None = None

    def run(self, request: DeployRequest) -> DeployJournal:
        """Switch to what is asked for, or go back. Raises CheckFailed where another deploy holds the host."""
        with self._state.locked(f"{request.requested_by} ({request.id})"):
            self._clean_up()
            self._state.forget_earlier(request.id)
            self._journal = DeployJournal(
                request=request,
                host_kind=self._kind.name,
                started=now(),
                former=self._kind.running(),
                former_boot=self._kind.boot_default(),
            )
            self._step("begun", f"{request.reason} to {request.generation}, asked for by {request.requested_by}")
            try:
                self._forward(request)
            except NotHeld as error:
                self._back(error.check.name, error.check.evidence, error.units, error.checks, error.measured)
            except (Exception, Interrupted) as error:
                self._back(self._journal.step, str(error) or type(error).__name__)
            return self._journal

    def recover(self) -> DeployJournal | None:
        """Bring a deploy that was cut off to its end; the journal of the last deploy, or None."""
        with self._state.locked("recovery of a deploy that was cut off"):
            self._clean_up()
            return self._state.journal()

    def _clean_up(self) -> None:
        journal = self._state.journal()
        if journal is None or journal.ended():
            return
        self._journal = journal
        if journal.step == "committing" and self._kind.boot_default() == journal.request.generation:
            self._commit(journal.request)
        else:
            reached = journal.step if journal.failure is None else f"{journal.step} after {journal.failure.check}"
            failure = journal.failure or DeployFailure(
                check=reached, evidence="the host, or the switch, was cut off here"
            )
            self._update(failure=failure)
            self._roll_back(touched=journal.step not in ("begun", "stopping"))

    def _forward(self, request: DeployRequest) -> None:
        journal = self._journal
        remembered = [self._remember(service) for service in request.stop]
        self._update(remembered=remembered)
        running = [service.unit for service in remembered if service.was_active]
        self._step("stopping", ", ".join(running) or "nothing has to give way")
        self._services.stop(running, DRAIN_S)
        self._step("activating", request.generation)
        self._kind.activate(request.generation, journal.former)
        self._step("gating", f"{request.gate.time_s:g} s at most")
        plan = plan_of(request.generation)
        last = self._state.history().last_good(plan.model.served_name, plan.model.path) if plan else None
        golden = request.golden or (last.golden if last else None)
        speed = last.output_tokens_per_s if last and last.gate.load_key() == request.gate.load_key() else None
        checks, measured = self._gate.pass_through(request, golden, speed, self._note)
        self._update(checks=checks, measured=measured)
        self._step("waiting", f"for the deployer to confirm, {request.confirm_s:g} s at most")
        self._wait(request)
        self._commit(request)

    def _remember(self, service) -> RememberedService:
        state = self._services.state(service.unit)
        return RememberedService(
            unit=service.unit, url=service.url, was_active=state.runs(), was_enabled=state.file_state == "enabled"
        )

    def _wait(self, request: DeployRequest) -> None:
        deadline = time.monotonic() + request.confirm_s
        while not self._state.confirmation(request.id).exists():
            if time.monotonic() > deadline:
                raise CheckFailed(
                    f"the deployer did not confirm within {request.confirm_s:g} s; its connection is taken for lost"
                )
            time.sleep(LOOK_EVERY_S)

    def _commit(self, request: DeployRequest) -> None:
        self._step("committing", "the boot default")
        self._kind.make_boot_default(request.generation)
        for service in self._journal.remembered:
            if service.was_enabled:  # else it would take the GPUs at the next boot
                self._services.enable(service.unit, False)
        # they run again where the power was cut after the boot default was set
        self._services.stop([service.unit for service in self._journal.remembered if service.was_active], DRAIN_S)
        self._end("committed", "serving, and what the host boots into")

    def _back(self, check, evidence, units=(), checks=None, measured=None) -> None:
        logs = {unit: self._services.logs(unit) for unit in units}
        changes = {"failure": DeployFailure(check=check, evidence=evidence, logs=logs)}
        if checks is not None:
            changes |= {"checks": checks, "measured": measured}
        touched = self._journal.step not in ("begun", "stopping")
        self._update(**changes)
        self._roll_back(touched)

    def _roll_back(self, touched: bool) -> None:
        journal = self._journal
        self._step("rolling back", f"{journal.failure.check}: {journal.failure.evidence}")
        try:
            if touched:
                self._kind.go_back(journal.former, journal.former_boot, journal.request.generation)
            again = [service for service in journal.remembered if service.was_active]
            for service in journal.remembered:
                if service.was_enabled and self._services.state(service.unit).file_state == "disabled":
                    self._services.enable(service.unit, True)
            self._services.start([service.unit for service in again])
            restored = [self._gate.service_answers(service) for service in again]
            if touched and journal.former is not None:
                restored += self._gate.serves(journal.former)
        except CheckFailed as error:
            restored = [Check(name="the way back", passed=False, evidence=str(error))]
        self._update(restored=restored)
        wrong = [f"{check.name}: {check.evidence}" for check in restored if not check.passed]
        if wrong:
            self._end("rollback failed", "; ".join(wrong))
        else:
            self._end("rolled back", "; ".join(check.evidence for check in restored) or "nothing had been running")

    def _end(self, step: DeployStep, text: str) -> None:
        journal = self._journal
        plan = plan_of(journal.request.generation)
        self._state.add_record(
            DeployRecord(
                id=journal.request.id,
                started=journal.started,
                ended=now(),
                outcome=step,
                reason=journal.request.reason,
                requested_by=journal.request.requested_by,
                generation=journal.request.generation,
                former=journal.former,
                plan_identity=journal.request.plan_identity,
                model=plan.model.served_name if plan else "",
                model_path=plan.model.path if plan else "",
                gate=journal.request.gate,
                checks=journal.checks,
                failure=journal.failure,
                golden=journal.measured.golden,
                output_tokens_per_s=journal.measured.output_tokens_per_s,
                down_s=seconds_between(journal, "stopping", "waiting"),
                stopped=journal.remembered,
            )
        )
        self._step(step, text)

    def _note(self, text: str) -> None:
        self._step(self._journal.step, text)

    def _step(self, step: DeployStep, text: str) -> None:
        """Write down that `step` is reached, before anything of it is done."""
        event = DeployEvent(time=now(), step=step, text=text)
        self._update(step=step, events=[*self._journal.events, event])
        self._say(f"{step}: {text}")

    def _update(self, **changes) -> None:
        self._journal = self._journal.model_copy(update=changes)
        self._state.write_journal(self._journal)


def now() -> str:
    """The time, ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def seconds_between(journal: DeployJournal, first: DeployStep, then: DeployStep) -> float | None:
    """Seconds from the first event of one step to the first of another; None where one was not reached."""
    times = [
        next((datetime.fromisoformat(event.time) for event in journal.events if event.step == step), None)
        for step in (first, then)
    ]
    return (times[1] - times[0]).total_seconds() if None not in times else None
