"""BenchRecord: topologies under load on one machine, with the limits beside the figures and where both come from."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from appliance.documents.base import Document, Part
from appliance.documents.engine import EngineReport
from appliance.documents.machine import MachineReport
from appliance.documents.model import ModelReport
from appliance.documents.plan import Plan, Topology

WorkloadName = Literal["plain", "tail isolation", "multi-turn", "structured output"]
Count = Annotated[int, Field(ge=0)]


class Distribution(Part):
    """Mean and percentiles of one quantity over the requests of one repetition, in milliseconds."""

    mean: float
    p50: float
    p90: float
    p99: float


class Figure(Part):
    """A quantity over the repetitions of a cell: the median, and the least and the most that was seen."""

    median: float
    least: float
    most: float


class Slo(Part):
    """What a request must meet to count for goodput. Milliseconds."""

    ttft_ms: float
    tpot_ms: float


class Workload(Part):
    """What is asked of a topology: one cell of the matrix, or one mix."""

    name: WorkloadName
    """plain: requests alike. tail isolation: short ones while long ones run. multi-turn: conversations whose turns
    share their prefix. structured output: answers bound to a JSON schema."""
    input_tokens: Count
    """Of a request; of the short one in tail isolation; of the first turn in multi-turn."""
    output_tokens: Count
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Requests in flight. Null: they come at `request_rate`."""
    request_rate: Annotated[float, Field(gt=0)] | None = None
    """Requests a second, Poisson arrivals. Null: `concurrency` holds."""
    requests: Annotated[int, Field(ge=1)]
    """Of a repetition; the short ones in tail isolation, turns counted one by one in multi-turn."""
    long_input_tokens: Count | None = None
    """Tail isolation: input of the requests behind which the short ones come; one of them is always running."""
    turns: Annotated[int, Field(ge=2)] | None = None
    """Multi-turn: turns of a conversation."""
    slo: Slo | None = None

    def key(self) -> tuple:
        """What two cells must share to be compared."""
        return (
            self.name, self.input_tokens, self.output_tokens, self.concurrency or 0, self.request_rate or 0.0,
            self.long_input_tokens or 0, self.turns or 0,
        )  # fmt: skip

    def words(self) -> str:
        """The workload in a few words."""
        load = f"{self.concurrency} in flight" if self.concurrency else f"{self.request_rate:g} requests/s"
        name = "" if self.name == "plain" else f"{self.name}, "
        behind = f" behind {self.long_input_tokens}" if self.long_input_tokens else ""
        turns = f", {self.turns} turns" if self.turns else ""
        return f"{name}{self.input_tokens}{behind} in, {self.output_tokens} out, {load}{turns}"


class KvTransfers(Part):
    """KV cache that went from prefill to decode, by the engine's own metrics."""

    transfers: Count
    bytes: Count
    latency_ms: float | None = None
    """Mean of a transfer."""
    gb_s: float | None = None
    """Mean of the engine's own reading, GB/s."""


class Repetition(Part):
    """One run of a workload. Failed requests are counted; in the latencies are only those that broke off early."""

    started: str
    """ISO 8601, UTC."""
    requests: Count
    completed: Count
    failures: dict[str, int] = {}
    """Failed requests by what the client saw."""
    input_tokens: Count
    """By the server's own count, of all requests."""
    cached_tokens: Count
    """Of the input tokens: those that came from a prefix cache."""
    output_tokens: Count
    """By the answers' `usage`."""
    duration_s: float
    input_tokens_per_s: float
    output_tokens_per_s: float
    ttft_ms: Distribution
    tpot_ms: Distribution
    itl_ms: Distribution
    e2e_ms: Distribution
    goodput_per_s: float | None = None
    """Requests a second that met the SLO; null without one."""
    acceptance_length: float | None = None
    """Tokens a step of speculative decoding; null without it."""
    kv_transfers: KvTransfers | None = None
    """Null where there is no prefill worker."""
    energy_j: float | None = None
    """Of all GPUs of the plan, by NVML's counter; null where there is none."""


class RoleThroughput(Part):
    """What the workers of a role did, by the GPUs of that role."""

    role: Literal["prefill", "decode", "aggregated"]
    gpus: Count
    input_tokens_per_s_per_gpu: float | None = None
    """Null for a role that computes no prompts, and where there is no GPU."""
    output_tokens_per_s_per_gpu: float | None = None


class LimitShare(Part):
    """What physics allows at best beside what was reached."""

    of: Literal["decode", "prefill", "KV transfer"]
    measured: float
    limit: float
    unit: Literal["tok/s", "GB/s"]
    share: float
    """measured / limit; above 1 something is wrong with one of the two."""
    binds: str
    """memory bandwidth, FLOP/s, link."""
    formula: str


class Cell(Part):
    """One workload on one topology: every repetition, and what they come to."""

    topology: Topology
    workload: Workload
    repetitions: Annotated[list[Repetition], Field(min_length=1)]
    figures: dict[str, Figure] = {}
    """By name, over the repetitions: see appliance.bench.figures.FIGURES for names and units."""
    output_tokens_per_s_per_gpu: float | None = None
    """Of all GPUs of the plan, by the median; null where there is none."""
    roles: list[RoleThroughput] = []
    limits: list[LimitShare] = []
    remarks: list[str] = []

    @property
    def requests(self) -> int:
        return sum(repetition.requests for repetition in self.repetitions)

    @property
    def completed(self) -> int:
        return sum(repetition.completed for repetition in self.repetitions)


class BenchedTopology(Part):
    """A topology as it was measured."""

    plan: Plan
    plan_identity: str
    start_seconds: dict[str, float] = {}
    """Seconds from its start until each worker, and the router, answered: of the last start."""
    starts: Count = 0


class Stamp(Part):
    """Where the figures come from. A record that lacks any of it is not compared."""

    closure: str | None = None
    """Hash of everything that was installed; see appliance.bench.stamp."""
    closure_basis: str | None = None
    versions: dict[str, str] = {}
    driver: str | None = None
    power_limits_w: list[float] | None = None
    """Of each GPU of the plans, in their order."""
    peer_to_peer: dict[str, bool] | None = None
    """Whether the driver lets GPU A reach GPU B, by "A-B"; null where it was not asked."""
    missing: list[str] = []
    """What should be here and is not: then the record is unstamped."""


class Asked(Part):
    """What was asked for: a run that is resumed must ask for the same."""

    topologies: list[Topology]
    workloads: list[Workload]
    repetitions: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    """How often each topology is started; the repetitions are spread over the rounds."""
    seed: int = 1


class BenchRecord(Document):
    KIND: ClassVar[str] = "BenchRecord"
    kind: Literal["BenchRecord"] = "BenchRecord"
    date: str
    command: str
    appliance_version: str
    simulated: bool = False
    """Whether the figures come from a latency profile and not from an engine. Shown wherever they are shown."""
    load_tool: str
    load_tool_version: str | None = None
    asked: Asked
    topologies: dict[str, BenchedTopology]
    cells: list[Cell] = []
    complete: bool = False
    """Whether all that was asked for was measured."""
    order: list[str] = []
    """The topologies in the order in which they were started."""
    stamp: Stamp
    machine: MachineReport
    model: ModelReport
    engine: EngineReport
    remarks: list[str] = []

    def stamped(self) -> bool:
        """Whether the record says where its figures come from: only then it is compared."""
        return not self.stamp.missing
