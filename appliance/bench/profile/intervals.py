"""Times of many events in little memory, and what follows from their order."""

from array import array
from collections.abc import Iterator

NO_LAUNCH = float("nan")


class Intervals:
    """Start and duration (µs) of each event, with one number that tells whose it is."""

    def __init__(self):
        self.starts, self.durations = array("d"), array("d")
        self.keys = array("q")

    def add(self, start: float, duration: float, key: int) -> None:
        """Append one event."""
        self.starts.append(start)
        self.durations.append(duration)
        self.keys.append(key)

    def __len__(self) -> int:
        return len(self.starts)

    def in_order(self) -> Iterator[tuple[float, float, int]]:
        """(start, end, key) by start; of those that start together the longest first: it holds the others."""
        starts, durations = self.starts, self.durations
        for index in sorted(range(len(starts)), key=lambda at: (starts[at], -durations[at])):
            yield starts[index], starts[index] + durations[index], self.keys[index]


def idle(intervals: Intervals) -> Iterator[tuple[float, float, int]]:
    """(idle from, idle until, key of the event that ends it) of each gap in which none of `intervals` runs."""
    until: float | None = None
    for start, end, key in intervals.in_order():
        if until is not None and start > until:
            yield until, start, key
        until = end if until is None else max(until, end)


def span(intervals: Intervals) -> float:
    """From the first start to the last end, µs."""
    if not len(intervals):
        return 0.0
    ends = (start + duration for start, duration in zip(intervals.starts, intervals.durations, strict=True))
    return max(ends) - min(intervals.starts)


def own_times(intervals: Intervals) -> Iterator[tuple[int, float]]:
    """(key, time without that of the events within it) of each event of one thread, where calls nest."""
    open_events: list[list] = []  # end, key, own time
    for start, end, key in intervals.in_order():
        while open_events and open_events[-1][0] <= start:
            _, done, own = open_events.pop()
            yield done, max(own, 0.0)
        if open_events:
            end = min(end, open_events[-1][0])  # times are rounded: a call ends within its caller
            open_events[-1][2] -= end - start
        open_events.append([end, key, end - start])
    while open_events:
        _, done, own = open_events.pop()
        yield done, max(own, 0.0)
