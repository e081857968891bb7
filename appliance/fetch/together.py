"""Work on several files at once: the first that fails ends them all."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import TypeVar

from appliance.fetch.pace import Pace
from appliance.recon.concurrency import INTERRUPT_S, some_at_once

Value = TypeVar("Value")
ENDING_S = 15
"""How long threads may take to notice that it ends: as long as a read from the hub may hang."""


def together(calls: Sequence[Callable[[], Value]], most: int, pace: Pace) -> list[Value]:
    """The values of `calls`, `most` of them at a time. Raises what the first raised that failed."""
    tasks = some_at_once(calls, most)
    waiting = set(tasks)
    try:
        while waiting:
            done, waiting = wait(waiting, timeout=INTERRUPT_S, return_when=FIRST_EXCEPTION)
            for task in done:
                task.result()
    except BaseException:  # a file's error, or Ctrl-C: the others end at their next byte
        pace.stop()
        for task in tasks:
            task.cancel()
        wait([task for task in tasks if not task.cancelled()], timeout=ENDING_S)
        raise
    return [task.result() for task in tasks]
