"""Where the command line writes: results on stdout, progress and log on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status

LINE_EVERY_S = 5.0

results = Console(highlight=False, soft_wrap=True)
progress = Console(stderr=True, highlight=False, soft_wrap=True)


class Step:
    """A step that takes a while: a spinner on a terminal, otherwise a line when its text changes and every 5 s."""

    def __init__(self, status: Status | None):
        self._status = status
        self._start = time.monotonic()
        self._printed_at = 0.0
        self._printed: str | None = None

    def update(self, text: str, detail: str = "") -> None:
        """Show what is being done now; a `detail` (such as a count) alone makes no line of its own."""
        elapsed = time.monotonic() - self._start
        line = f"{text}{detail} ({elapsed:.0f} s)"
        if self._status is not None:
            self._status.update(escape(line))
        elif text != self._printed or elapsed - self._printed_at >= LINE_EVERY_S:
            progress.print(line, markup=False)
            self._printed, self._printed_at = text, elapsed


@contextmanager
def step() -> Iterator[Step]:
    """Show what the Step is told, with the seconds since it began, while the block runs."""
    if progress.is_terminal:
        with progress.status("") as status:
            yield Step(status)
    else:
        yield Step(None)


def say(text: str) -> None:
    """One line of progress on stderr."""
    progress.print(text, markup=False)
