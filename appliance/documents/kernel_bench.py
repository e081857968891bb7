"""KernelBench: kernels for the same work, measured side by side in one process on one GPU."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from appliance.documents.base import Document, Part

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Microseconds(Part):
    """The times of all repetitions."""

    median: Positive
    p10: Positive
    p90: Positive
    minimum: Positive
    repetitions: Count


class KernelTime(Part):
    """One kernel at one shape: its times, or why there are none."""

    us: Microseconds | None = None
    relative_error: float | None = None
    """2-norm of the difference from float64 over the 2-norm of that."""
    captured: bool | None = None
    """Whether a CUDA graph was replayed; else the kernel was called from Python, which takes its time too."""
    failed: str | None = None

    @model_validator(mode="after")
    def _has_times_or_a_reason(self) -> Self:
        if (self.us is None) == (self.failed is None):
            raise ValueError("expected either us or failed")
        return self


class KernelCase(Part):
    """One shape of one operation."""

    operation: str
    shape: dict[str, int | bool]
    bytes: Count
    """The fewest that must move: every input read once, every output written once."""
    blocks: Count
    """Thread blocks of our launch, against those that the GPU runs at once."""
    blocks_at_once: Count
    kernels: dict[str, KernelTime]


class BenchedGpu(Part):
    name: str
    compute_capability: str
    multiprocessors: Count
    driver: str | None
    copy_bytes_per_s: Positive
    """Measured: a large copy within the device, bytes read and bytes written counted."""
    empty_graph_us: Microseconds
    """A graph of one kernel that does next to nothing."""


class KernelBench(Document):
    KIND: ClassVar[str] = "KernelBench"
    kind: Literal["KernelBench"] = "KernelBench"
    date: str
    command: str
    gpu: BenchedGpu
    cuda: str | None
    python: str
    packages: dict[str, str | None]
    library_sha256: str
    repetitions: Count
    method: str
    left_out: dict[str, dict[str, str]]
    """By operation: the kernels that cannot run here, and why."""
    cases: list[KernelCase]
