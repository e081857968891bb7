"""Probes side by side, each with a time limit. A hung one cannot hold up the others, nor the end of the program."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What became of a probe: its value, or why there is none."""

    value: object = None
    problem: str | None = None
    seconds: float = 0.0


def side_by_side(
    probes: Mapping[str, Callable[[], object]],
    limit_s: float,
    done: Callable[[str, Outcome], None] = lambda name, outcome: None,
) -> dict[str, Outcome]:
    """Run all `probes` at once and return their outcomes in the order given, after `limit_s` at the latest.

    A probe that fails or is not back in time has a `problem` in words. `done` is called in this thread for each as it
    ends. Threads are daemons: not ThreadPoolExecutor, whose exit waits for them, and a read from a dead device may
    never come back.
    """
    start = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    changed = threading.Condition()

    def call(name: str, probe: Callable[[], object]) -> None:
        try:
            outcome = Outcome(value=probe(), seconds=time.monotonic() - start)
        except Exception as error:  # a probe's fault is that probe's missing facts, never the report's end
            outcome = Outcome(problem=f"{type(error).__name__}: {error}"[:200], seconds=time.monotonic() - start)
        with changed:
            outcomes[name] = outcome
            changed.notify()

    for name, probe in probes.items():
        threading.Thread(target=call, args=(name, probe), name=f"probe {name}", daemon=True).start()
    told: set[str] = set()
    deadline = start + limit_s
    while len(told) < len(probes) and (left := deadline - time.monotonic()) > 0:
        with changed:
            changed.wait_for(lambda: len(outcomes) > len(told), timeout=left)
            ready = {name: outcome for name, outcome in outcomes.items() if name not in told}
        for name, outcome in ready.items():
            told.add(name)
            done(name, outcome)
    late = Outcome(problem=f"not back within {limit_s:g} s", seconds=limit_s)
    with changed:
        return {name: outcomes.get(name, late) for name in probes}
