"""RunRecord: what was run, on what, whether its checks held, and what was measured."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part
from appliance.documents.engine import EngineReport
from appliance.documents.machine import MachineReport
from appliance.documents.model import ModelReport
from appliance.documents.plan import Plan
from appliance.documents.verification import Check


class Distribution(Part):
    """Mean and percentiles of one quantity over the requests of a cell, in milliseconds."""

    mean: float
    p50: float
    p90: float
    p99: float


class ServeCell(Part):
    """One cell of a serving measurement: what was asked for, and what came of it."""

    concurrency: int
    requests: int
    completed: int
    input_tokens: int
    output_tokens: int
    duration_s: float
    output_tokens_per_s: float
    ttft_ms: Distribution
    tpot_ms: Distribution
    itl_ms: Distribution


class RunRecord(Document):
    KIND: ClassVar[str] = "RunRecord"
    kind: Literal["RunRecord"] = "RunRecord"
    date: str
    command: str
    appliance_version: str
    plan_identity: str
    machine: MachineReport
    model: ModelReport
    engine: EngineReport
    plan: Plan
    start_seconds: dict[str, float]
    """Seconds from its start until each worker, and the router, answered."""
    checks: list[Check]
    bench_tool: str | None = None
    cells: list[ServeCell] = []
    remarks: list[str] = []
