"""A simulated device for tests: bandwidths as told, nothing measured. Its results are labelled "simulated"."""

import itertools
import time

from appliance.preflight.gpu.device import Buffer, Copy

DEFAULT_GB_S = 50.0
OVERHEAD_S = 4e-7


class SimulatedDevice:
    """GPUs that copy as fast as they are told: {"gb_s": {"0->4 write": 37.0}, "together": {...}, "hangs": [...]}.

    `together` holds where several copies run at once, a copy in `hangs` never ends, one in `loses` does not arrive, and
    pairs in `apart` ("0-1") do not reach each other.
    """

    def __init__(self, told: dict):
        self._told = told
        self._next = itertools.count(1)
        self._bytes: dict[int, int] = {}

    def name(self, gpu: int) -> str:
        return "simulated"

    def allocate(self, gpu: int, size: int) -> Buffer:
        return Buffer(gpu, next(self._next), size)

    def fill(self, buffer: Buffer, byte: int) -> None:
        self._bytes[buffer.address] = byte

    def holds(self, buffer: Buffer, byte: int) -> bool:
        return self._bytes.get(buffer.address) == byte

    def reach(self, gpu: int, other: int) -> bool:
        return f"{gpu}-{other}" not in self._told.get("apart", [])

    def seconds(self, copies: list[Copy]) -> list[float]:
        return [self._one(copy, together=len(copies) > 1) for copy in copies]

    def _one(self, copy: Copy, together: bool) -> float:
        name = f"{copy.source.gpu}->{copy.target.gpu} {'write' if copy.by == copy.source.gpu else 'read'}"
        if name in self._told.get("hangs", []):
            time.sleep(3600)
        if name not in self._told.get("loses", []):
            self._bytes[copy.target.address] = self._bytes.get(copy.source.address, 0)
        rates = self._told.get("gb_s", {}) | (self._told.get("together", {}) if together else {})
        rate = rates.get(name, DEFAULT_GB_S)
        return copy.times * (copy.source.size / (rate * 1e9) + OVERHEAD_S)

    def export(self, buffer: Buffer) -> bytes:
        raise RuntimeError("a simulated device has no other process")

    def open(self, gpu: int, handle: bytes, size: int) -> Buffer:
        raise RuntimeError("a simulated device has no other process")
