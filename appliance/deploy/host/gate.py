"""The gate: what a new generation has to show on the host before it is kept, in the order of cost."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx

from appliance.deploy.host.kind import plan_of, units_of
from appliance.deploy.host.load import short_load
from appliance.deploy.host.switch import NotHeld
from appliance.deploy.host.systemctl import Systemctl
from appliance.documents import Check, GoldenRecord, Plan
from appliance.documents.deploy import DeployRequest, GateResult, RememberedService
from appliance.engines.sglang.health import generates
from appliance.errors import CheckFailed, InputError
from appliance.supervisor.completion import completes
from appliance.verify.disaggregation import check_disaggregation, worker_metrics
from appliance.verify.golden import ask_all, differences
from appliance.verify.identity import check_identity

LOOK_EVERY_S = 0.5
SERVICE_ANSWERS_S = 600.0


class ServiceGate:
    """See Gate. Asks the units of systemd, the workers and the front door, all on this host."""

    def __init__(self, services: Systemctl):
        self._services = services

    def pass_through(
        self, request: DeployRequest, golden: GoldenRecord | None, last_speed: float | None, say: Callable[[str], None]
    ) -> tuple[list[Check], GateResult]:
        """Every check in turn. Raises NotHeld at the first that does not hold, with those that were made."""
        return Passage(self._services, request, golden, last_speed, say).all()

    def serves(self, generation: str) -> list[Check]:
        """Units active within the plan's own time, and a completion through the front door."""
        try:
            plan = plan_of(generation)
        except InputError as error:
            return [Check(name="the former appliance", passed=False, evidence=str(error))]
        if plan is None:
            return []
        units = units_of(generation)
        deadline = time.monotonic() + plan.start_timeout_s
        while waiting := inactive(self._services, units):
            if time.monotonic() > deadline:
                return [Check(name="the former units are active", passed=False, evidence=waiting)]
            time.sleep(LOOK_EVERY_S)
        wrong = asyncio.run(completes(plan))
        evidence = f"{plan.endpoint()}: {wrong or 'the former appliance answers'}"
        return [Check(name="the former appliance answers", passed=wrong is None, evidence=evidence)]

    def service_answers(self, service: RememberedService) -> Check:
        """Active again, and where it has an address, a 200 from there."""
        name = f"{service.unit} serves again"
        deadline = time.monotonic() + SERVICE_ANSWERS_S
        while True:
            state = self._services.state(service.unit)
            answer = get(service.url) if service.url else None
            if state.active == "active" and answer in (None, "200"):
                at = f"{service.url} answers" if service.url else "active"
                return Check(name=name, passed=True, evidence=f"{service.unit}: {at}")
            if state.active == "failed" or time.monotonic() > deadline:
                at = f", {service.url}: {answer}" if service.url else ""
                return Check(name=name, passed=False, evidence=f"{state.words()}{at}")
            time.sleep(LOOK_EVERY_S)


class Passage:
    """One way through the gate."""

    def __init__(self, services, request: DeployRequest, golden, last_speed, say):
        self._services, self._request, self._limits = services, request, request.gate
        self._golden, self._last_speed, self._say = golden, last_speed, say
        self._deadline = time.monotonic() + request.gate.time_s
        self._units = units_of(request.generation)
        self._checks: list[Check] = []
        self._measured = GateResult()

    def all(self) -> tuple[list[Check], GateResult]:
        """All checks. Raises NotHeld."""
        plan = self._the_plan()
        self._units_get_active()
        started = {unit: self._services.state(unit).restarts for unit in self._units}
        workers = [f"sglang-{worker.name}.service" for worker in plan.workers]
        for check, unit in zip(self._asked("identity", check_identity, plan), workers, strict=True):
            self._hold(check, [unit])
        for worker, unit in zip(plan.workers, workers, strict=True):
            well = asyncio.run(generates(plan.url(worker.port)))
            words = f"GET {plan.url(worker.port)}/health_generate: {'200' if well else 'no 200'}"
            self._hold(Check(name=f"a token from {worker.name}", passed=well, evidence=words), [unit])
        before = self._asked("metrics", worker_metrics, plan)
        answers = self._asked("golden prompts", ask_all, plan.endpoint(), plan.model.served_name)
        self._compare(plan, answers)
        for check in check_disaggregation(plan, before, self._asked("metrics", worker_metrics, plan), len(answers)):
            self._hold(check, workers)
        self._load(plan)
        again = [unit for unit in self._units if self._services.state(unit).restarts > started[unit]]
        evidence = f"started again: {', '.join(again)}" if again else "none"
        self._hold(Check(name="no unit died under the checks", passed=not again, evidence=evidence), again)
        return self._checks, self._measured

    def _the_plan(self) -> Plan:
        try:
            plan = plan_of(self._request.generation)
        except InputError as error:
            self._hold(Check(name="plan", passed=False, evidence=str(error)), [])
        if plan is None:
            self._hold(Check(name="plan", passed=False, evidence="the generation has no appliance"), [])
        same = plan.identity() == self._request.plan_identity
        words = f"identity {plan.identity()[:16]}, the deployer's is {self._request.plan_identity[:16]}"
        self._hold(Check(name="the plan is the deployer's", passed=same, evidence=words), [])
        return plan

    def _units_get_active(self) -> None:
        name, said = "units are active", None
        while waiting := inactive(self._services, self._units):
            states = {unit: self._services.state(unit) for unit in self._units}
            given_up = [
                unit for unit, s in states.items() if s.active == "failed" or s.restarts > self._limits.most_restarts
            ]
            if given_up:
                evidence = "; ".join(f"{unit} is {states[unit].words()}" for unit in given_up)
                self._hold(Check(name=name, passed=False, evidence=evidence), given_up)
            if time.monotonic() > self._deadline:
                ill = [unit for unit, s in states.items() if s.active != "active"]
                evidence = f"not within {self._limits.time_s:g} s: {waiting}"
                self._hold(Check(name=name, passed=False, evidence=evidence), ill)
            if waiting != said:
                self._say(f"waiting for {waiting}")
                said = waiting
            time.sleep(LOOK_EVERY_S)
        self._hold(Check(name=name, passed=True, evidence=", ".join(self._units)), [])

    def _compare(self, plan: Plan, answers: list) -> None:
        record = GoldenRecord(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            model=plan.model.served_name,
            engine_version=plan.engine.version,
            topology=plan.topology,
            answers=answers,
        )
        self._measured = self._measured.model_copy(update={"golden": record})
        if self._golden is None:
            words = f"{len(answers)} answered; nothing is recorded yet to compare with, so these are recorded"
            self._hold(Check(name="golden prompts", passed=True, evidence=words), [])
            return
        wrong = differences(self._golden.answers, answers)
        words = "; ".join(wrong) or f"{len(answers)} answers equal those of {self._golden.date}"
        passed = len(wrong) <= self._limits.golden_tolerance
        if wrong:
            words += f"; {self._limits.golden_tolerance} may differ. {first_difference(self._golden.answers, answers)}"
        self._hold(Check(name="golden prompts", passed=passed, evidence=words), self._units)

    def _load(self, plan: Plan) -> None:
        limits = self._limits
        done = self._asked("load", short_load, plan, limits.load_requests, limits.load_at_once, limits.load_tokens)
        words = f"{done.answered} of {limits.load_requests} answered"
        words += f"; first error: {done.errors[0]}" if done.errors else ""
        self._hold(Check(name="no error under load", passed=not done.errors, evidence=words), self._units)
        speed = round(done.tokens / done.seconds, 2)
        self._measured = self._measured.model_copy(update={"output_tokens_per_s": speed})
        words = f"{speed:g} output tokens/s"
        if self._last_speed is None:
            self._hold(Check(name="speed", passed=True, evidence=f"{words}; no earlier one to compare with"), [])
            return
        least = self._last_speed * limits.least_speed_share
        words += f"; at least {least:g} expected, {limits.least_speed_share:.0%} of the last good {self._last_speed:g}"
        self._hold(Check(name="speed", passed=speed >= least, evidence=words), self._units)

    def _asked(self, name: str, call: Callable, *arguments):
        """What `call` answers within the time that is left; that it cannot is a check that does not hold."""
        left = self._deadline - time.monotonic()
        pool = ThreadPoolExecutor(max_workers=1)
        try:
            return pool.submit(call, *arguments).result(timeout=max(left, 0.1))
        except CheckFailed as error:
            evidence = str(error)
        except TimeoutError:
            evidence = f"not answered within the gate's {self._limits.time_s:g} s"
        finally:
            pool.shutdown(wait=False)
        self._hold(Check(name=name, passed=False, evidence=evidence), self._units)

    def _hold(self, check: Check, units: list[str]) -> None:
        self._checks.append(check)
        self._say(f"{check.name}: {'ok' if check.passed else 'NOT'}, {check.evidence}")
        if not check.passed:
            raise NotHeld(check, units, self._checks, self._measured)


def inactive(services: Systemctl, units: list[str]) -> str:
    """The units that are not active, with their state, in words; "" where all are."""
    states = {unit: services.state(unit) for unit in units}
    return ", ".join(f"{unit} {state.words()}" for unit, state in states.items() if state.active != "active")


def first_difference(expected: list, found: list) -> str:
    """The first answer that is not the recorded one, beside it."""
    by_name = {answer.prompt: answer for answer in found}
    for want in expected:
        got = by_name.get(want.prompt)
        if got is not None and (got.text != want.text or got.token_ids != want.token_ids):
            return f"{want.prompt!r} answered {got.text[:120]!r}, recorded {want.text[:120]!r}"
    return ""


def get(url: str) -> str:
    """What a GET of `url` answers: its status, or why there is none."""
    try:
        return str(httpx.get(url, timeout=10, trust_env=False).status_code)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"no answer ({type(error).__name__})"
