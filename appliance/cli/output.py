"""Where the command line writes: results on stdout, progress and log on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

LINE_EVERY_S = 5.0

# what is shown is data: square brackets in it are no markup
results = Console(highlight=False, soft_wrap=True, markup=False)
progress = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


class Step:
    """A step that takes a while: lines on stderr, one when its text changes and one every 5 s."""

    def __init__(self):
        self._start = time.monotonic()
        self._printed_at = 0.0
        self._printed: str | None = None

    def update(self, text: str, detail: str = "") -> None:
        """Show what is being done now; a `detail` (such as a count) alone makes no line of its own."""
        elapsed = time.monotonic() - self._start
        if text != self._printed or elapsed - self._printed_at >= LINE_EVERY_S:
            progress.print(f"{text}{detail} ({elapsed:.0f} s)")
            self._printed, self._printed_at = text, elapsed


class TerminalStep(Step):
    """The same on a terminal: one line with a spinner and a clock that runs by itself."""

    def __init__(self, bar, task):
        super().__init__()
        self._bar, self._task = bar, task

    def update(self, text: str, detail: str = "") -> None:
        self._bar.update(self._task, description=f"{text}{detail}")


@contextmanager
def step() -> Iterator[Step]:
    """Show what the Step is told, with the seconds since it began, while the block runs."""
    if not progress.is_terminal:
        yield Step()
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=progress, transient=True) as bar:
        yield TerminalStep(bar, bar.add_task(""))


def say(text: str) -> None:
    """One line of progress on stderr."""
    progress.print(text)
