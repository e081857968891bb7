"""The child's side of a probe: read what to do, and tell each number as soon as it is known.

Libraries print what they like on standard output: it becomes standard error before anything else is imported.
"""

import json
import os
import sys
from collections.abc import Callable


class Teller:
    """Writes lines of JSON to the parent."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def doing(self, what: str) -> None:
        """What is being done now: what the parent says where it has to kill this process."""
        self._tell(doing=what)

    def measure(self, name: str, value: float, unit: str, better: str = "higher") -> None:
        """One number."""
        self._tell(measure={"name": name, "value": float(f"{value:.4g}"), "unit": unit, "better": better})

    def fact(self, name: str, value: str) -> None:
        """Something that is no number."""
        self._tell(fact=[name, str(value)[:500]])

    def problem(self, why: str) -> None:
        """Why the probe cannot be completed."""
        self._tell(problem=" ".join(str(why).split())[:500])

    def _tell(self, **line: object) -> None:
        self._out.write(json.dumps(line) + "\n")


def run(main: Callable[[dict, Teller], None]) -> None:
    """Read the specification, call `main`, and end without taking libraries apart: their destructors crash."""
    teller = Teller()
    try:
        main(json.loads(sys.stdin.read()), teller)
    except Exception as error:
        teller.problem(f"{type(error).__name__}: {error}")
    teller._tell(done=True)
    sys.stderr.flush()
    os._exit(0)
