"""Probes side by side, each with a time limit. A hung one cannot hold up the others, nor the end of the program."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.recon.absent import in_words

Value = TypeVar("Value")

INTERRUPT_S = 0.2
"""A wait of the main thread is never longer: a signal that comes just before it begins would not end it."""


@dataclass(frozen=True)
class Outcome:
    """What became of a probe: its value, or why there is none."""

    value: object = None
    problem: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Probe:
    """What to call, and for how many seconds to wait for it."""

    call: Callable[[], object]
    limit_s: float


class Once(Generic[Value]):
    """A call whose outcome several probes need: made when the first asks, and had by all, be it a value or an error."""

    def __init__(self, call: Callable[[], Value]):
        self._call = call
        self._lock = threading.Lock()
        self._made: Future[Value] = Future()

    def __call__(self) -> Value:
        with self._lock:
            if not self._made.done():
                try:
                    self._made.set_result(self._call())
                except Exception as error:
                    self._made.set_exception(error)
        return self._made.result()


def side_by_side(
    probes: Mapping[str, Probe], done: Callable[[str, Outcome], None] = lambda name, outcome: None
) -> dict[str, Outcome]:
    """Run all `probes` at once and return their outcomes in the order given, each at its limit at the latest.

    A probe that fails or is not back in time has a `problem` in words. `done` is called in this thread for each as it
    ends. Threads are daemons: not ThreadPoolExecutor, whose exit waits for them, and a driver may never come back.
    """
    start = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    changed = threading.Condition()

    def run(name: str, probe: Probe) -> None:
        try:
            outcome = Outcome(value=probe.call(), seconds=time.monotonic() - start)
        except Exception as error:  # a probe's fault is that probe's missing facts, never the report's end
            outcome = Outcome(problem=in_words(error)[:300], seconds=time.monotonic() - start)
        with changed:
            outcomes.setdefault(name, outcome)
            changed.notify()

    for name, probe in probes.items():
        threading.Thread(target=run, args=(name, probe), name=f"probe {name}", daemon=True).start()
    told: set[str] = set()
    while len(told) < len(probes):
        with changed:
            waiting = [probe.limit_s for name, probe in probes.items() if name not in outcomes]
            if waiting:
                left = start + min(waiting) - time.monotonic()
                changed.wait_for(lambda: outcomes.keys() - told, timeout=min(max(left, 0), INTERRUPT_S))
            now = time.monotonic() - start
            for name, probe in probes.items():
                if now >= probe.limit_s:
                    late = Outcome(problem=f"not back within {probe.limit_s:g} s", seconds=probe.limit_s)
                    outcomes.setdefault(name, late)
            ready = {name: outcome for name, outcome in outcomes.items() if name not in told}
        for name, outcome in ready.items():
            told.add(name)
            done(name, outcome)
    return {name: outcomes[name] for name in probes}


def some_at_once(calls: Sequence[Callable[[], Value]], most: int) -> list[Future[Value]]:
    """Make `calls` in their order, `most` of them at a time; returns their futures, to be waited for or cancelled.

    Threads are daemons here too: one that hangs on a connection must not hold up the end of the program.
    """
    futures: list[Future[Value]] = [Future() for _ in calls]
    waiting = deque(zip(calls, futures, strict=True))

    def work() -> None:
        while True:
            try:
                call, future = waiting.popleft()
            except IndexError:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)

    for _ in range(min(most, len(calls))):
        threading.Thread(target=work, daemon=True).start()
    return futures
