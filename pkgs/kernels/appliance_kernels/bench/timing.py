"""How times are taken: CUDA graph replay between two events, the L2 cache flushed before each replay."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

WARM_UP = 3


@dataclass(frozen=True)
class Times:
    """Microseconds over all repetitions."""

    median: float
    p10: float
    p90: float
    minimum: float
    repetitions: int

    @classmethod
    def of(cls, microseconds: list[float]) -> "Times":
        ordered = sorted(microseconds)
        tenth = len(ordered) // 10
        return cls(statistics.median(ordered), ordered[tenth], ordered[-1 - tenth], ordered[0], len(ordered))

    def as_dict(self) -> dict:
        return {k: round(v, 3) for k, v in asdict(self).items()}


class Stopwatch:
    def __init__(self, device: torch.device, repetitions: int):
        self.repetitions = repetitions
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(4 * l2, dtype=torch.uint8, device=device)

    def time(self, function: Callable[[], object], graph: bool = True) -> Times:
        run = function
        for _ in range(WARM_UP):
            function()
        torch.cuda.synchronize()
        if graph:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                function()
            run = captured.replay
            run()
        times = []
        for _ in range(self.repetitions):
            self._flush.zero_()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        return Times.of(times)

    @staticmethod
    def once(function: Callable[[], object]) -> float:
        """Seconds of one call, roughly."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e-3

    def empty_graph(self) -> Times:
        """A graph of one kernel that does next to nothing: the part of each time that no kernel can lower."""
        one = torch.zeros(1, device=self._flush.device)
        return self.time(lambda: one.add_(1))

    def copy_bandwidth(self, size: int = 1 << 32) -> float:
        """Bytes a second of a large device-to-device copy, read and written bytes counted."""
        source = torch.empty(size, dtype=torch.uint8, device=self._flush.device)
        target = torch.empty_like(source)
        source.random_(0, 256)
        return 2 * size / (self.time(lambda: target.copy_(source), graph=False).median * 1e-6)
