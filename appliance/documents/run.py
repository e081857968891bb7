"""RunRecord: what was run, on what, whether its checks held, and what was measured."""

from typing import ClassVar, Literal

from appliance.documents.base import Document
from appliance.documents.bench import Cell
from appliance.documents.engine import EngineReport
from appliance.documents.machine import MachineReport
from appliance.documents.model import ModelReport
from appliance.documents.plan import Plan
from appliance.documents.verification import Check


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
    cells: list[Cell] = []
    remarks: list[str] = []
