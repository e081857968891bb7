"""How fast, how far, and whether to go on: what all threads of a fetch share."""

import threading
import time
from collections.abc import Callable

from appliance.fetch.wanted import Stopped

Progress = Callable[[str, int, int], None]
"""Told what is being done, bytes done, bytes in all."""


class Pace:
    """Counts bytes, holds them to `rate` bytes a second over all threads (None: as fast as it goes), and ends them."""

    def __init__(self, what: str, total: int, on_progress: Progress, rate: int | None = None):
        self._what, self._total, self._on_progress, self._rate = what, total, on_progress, rate
        self._lock = threading.Lock()
        self._done = 0
        self._due = time.monotonic()
        self._end = threading.Event()

    def add(self, count: int) -> None:
        """`count` bytes were handled (taken back, if negative). Waits as the rate wants it. Raises Stopped."""
        with self._lock:
            self._done += count
            done, now = self._done, time.monotonic()
            if self._rate:
                self._due = max(self._due, now) + max(count, 0) / self._rate
            wait = self._due - now
        self._on_progress(self._what, done, self._total)
        if self._rate and wait > 0:
            self.pause(wait)
        elif self._end.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        """Wait, unless it ends meanwhile. Raises Stopped."""
        if self._end.wait(seconds):
            raise Stopped

    def stop(self) -> None:
        """Make every thread raise Stopped at its next byte."""
        self._end.set()
