"""ProfileReport: where the time of a few decode steps went, and how evenly experts were loaded."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from appliance.documents.base import Document, Part

Count = Annotated[int, Field(ge=0)]
Time = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Counts = Literal["kernels", "operators"]


class ProfiledGpu(Part):
    """The GPU as the trace describes it."""

    name: str
    compute_capability: str
    multiprocessors: Annotated[int, Field(ge=1)]
    threads_per_sm: Annotated[int, Field(ge=1)] | None = None
    registers_per_sm: Annotated[int, Field(ge=1)] | None = None
    shared_bytes_per_sm: Annotated[int, Field(ge=1)] | None = None


class ProfiledKernel(Part):
    """A kernel at one launch geometry; on a CPU an operator, without the operators that it calls."""

    name: str
    kernel_class: str
    """By appliance/bench/profile/kernel_classes.toml; "other": not in it."""
    count: Annotated[int, Field(ge=1)]
    total_us: Time
    mean_us: Time
    share: Share
    """Of the time of all kernels (operators) together."""
    blocks: Count | None = None
    threads: Count | None = None
    """Of a block."""
    registers: Count | None = None
    """Of a thread."""
    shared_bytes: Count | None = None
    """Of a block, static and dynamic."""
    blocks_per_sm: Count | None = None
    """Blocks that an SM could hold at once."""
    waves: Time | None = None
    """Blocks over what the whole GPU could hold at once."""
    occupancy: Share | None = None
    """Theoretical: warps of an SM that is full of this kernel, over those that it could hold."""
    leaves_gpu_empty: bool = False
    """Fewer blocks than SMs, and a share of time worth naming."""


class ClassTime(Part):
    kernel_class: str
    count: Annotated[int, Field(ge=1)]
    total_us: Time
    share: Share


class CopyTime(Part):
    kind: str
    """As the profiler names it: "Memcpy HtoD (Pageable -> Device)"."""
    count: Annotated[int, Field(ge=1)]
    total_us: Time
    bytes: Count | None = None


class Gaps(Part):
    """Time in which the GPU ran nothing, between its first and its last kernel or copy."""

    count: Count
    total_us: Time
    share: Share
    longest_us: Time
    launch_us: Time
    """What was next had not been launched when the GPU became idle: the CPU was late."""
    launch_share: Share
    """`launch_us` over the whole time: the launch-bound share."""
    queued_us: Time
    """It had been launched already: the GPU's own pauses, as between the nodes of a graph."""
    unknown_us: Time
    """The trace does not hold the launch."""


class StepCount(Part):
    name: str
    """As SGLang annotates a step: "step[DECODE bs=8]"."""
    count: Annotated[int, Field(ge=1)]


class TraceProfile(Part):
    """One device of one trace."""

    file: str
    counts: Counts
    """kernels: of a GPU. operators: of a CPU, which has no kernels; nothing about a GPU follows from them."""
    device: int | None = None
    gpu: ProfiledGpu | None = None
    rank: Count | None = None
    steps: list[StepCount] = []
    wall_us: Time
    """From the start of the first kernel or copy to the end of the last; operators: of the busiest thread."""
    busy_us: Time
    classes: list[ClassTime]
    kernels: list[ProfiledKernel]
    gaps: Gaps | None = None
    copies: list[CopyTime] = []
    communication_share: Share = 0.0
    """Of the time of all kernels and copies; a rank that waits for others spends it there as well."""
    simulated: bool = False

    def empty_gpu(self) -> list[ProfiledKernel]:
        """The kernels that leave the GPU empty, by time."""
        return [kernel for kernel in self.kernels if kernel.leaves_gpu_empty]


class LayerLoad(Part):
    """The experts of one layer over all recorded passes."""

    layer: Count
    """Among the model's layers."""
    busiest_expert: Count
    busiest_share: Share
    even_share: Share
    experts_used: Count


class Placement(Part):
    """What a placement of experts on ranks would give, by the recorded loads."""

    name: str
    ranks: Annotated[int, Field(ge=1)]
    redundant_experts: Count = 0
    busiest_rank_share: Share
    """Mean over passes and layers of the busiest rank's share of a layer's work; even is 1/ranks."""
    balancedness: Share
    """Mean over passes and layers of mean load over largest load, as SGLang reports it; 1 is even."""
    slowdown: Annotated[float, Field(ge=1)]
    """Sum of the largest loads over sum of the mean ones: the experts' time against even ranks, by counts alone."""


class BatchLoad(Part):
    """Consecutive passes taken together, as a batch that many times larger would have routed them."""

    passes: Annotated[int, Field(ge=1)]
    assignments: Time
    """Mean of a layer: its tokens times the experts that each is sent to."""
    experts_used: Time
    """Mean of a layer: each is read once a pass, however few tokens come to it."""
    assignments_per_used_expert: Time
    balancedness: Share
    """Of contiguous experts on `ranks` ranks."""
    ranks: Annotated[int, Field(ge=1)]


class ExpertLoad(Part):
    """From SGLang's recorder of expert distribution."""

    file: str
    passes: Annotated[int, Field(ge=1)]
    evaluated_passes: Annotated[int, Field(ge=1)]
    """The later passes, on which placements are judged; EPLB is fitted to the earlier ones."""
    fitted_on_same: bool
    """There was one pass: EPLB was fitted to what it is judged on, and looks better than it is."""
    experts: Annotated[int, Field(ge=1)]
    counted_by: Annotated[int, Field(ge=1)] = 1
    """Ranks that each counted every token: SGLang adds them up, and their sum was divided by this."""
    layers: list[LayerLoad]
    placements: list[Placement]
    batches: list[BatchLoad]
    limits: list[str]


class ProfileReport(Document):
    KIND: ClassVar[str] = "ProfileReport"
    kind: Literal["ProfileReport"] = "ProfileReport"
    date: str
    command: str
    source: Literal["running worker", "saved files"]
    worker: str | None = None
    plan_identity: str | None = None
    engine_version: str | None = None
    load: str | None = None
    """What ran during the recording."""
    simulated: bool = False
    traces: list[TraceProfile] = []
    experts: ExpertLoad | None = None
    remarks: list[str] = []
