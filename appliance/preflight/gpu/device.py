"""What probes do with GPUs, whoever does it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Buffer:
    """Memory on a GPU: address and bytes, as the device numbers them."""

    gpu: int
    address: int
    size: int


@dataclass(frozen=True)
class Copy:
    """A copy by the copy engine of GPU `by`: a write where that is the source's, a read where it is the target's."""

    source: Buffer
    target: Buffer
    by: int
    times: int


class Device(Protocol):
    """The GPUs of this process. Errors are RuntimeError with the name that CUDA gives them."""

    def name(self, gpu: int) -> str:
        """The GPU's name."""

    def allocate(self, gpu: int, size: int) -> Buffer:
        """Memory that other processes can open (cuMemAlloc, not the allocator of virtual memory)."""

    def fill(self, buffer: Buffer, byte: int) -> None:
        """Set every byte."""

    def holds(self, buffer: Buffer, byte: int) -> bool:
        """Whether the first and the last page of a buffer hold only `byte`."""

    def reach(self, gpu: int, other: int) -> bool:
        """Let `gpu` access the memory of `other`; False where it cannot."""

    def seconds(self, copies: list[Copy]) -> list[float]:
        """Do all copies at once, each on a stream of its own; how long each took, by the GPU's clock."""

    def export(self, buffer: Buffer) -> bytes:
        """A handle that another process can open."""

    def open(self, gpu: int, handle: bytes, size: int) -> Buffer:
        """Another process's memory, by its handle, as `gpu` sees it."""


def device(simulated: dict | None) -> Device:
    """CUDA, or where a test says so a simulated device."""
    if simulated is not None:
        from appliance.preflight.gpu.simulated import SimulatedDevice

        return SimulatedDevice(simulated)
    from appliance.preflight.gpu.driver import CudaDriver

    return CudaDriver()
