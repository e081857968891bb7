"""The typed documents that flow from stage to stage: recon -> plan -> preflight -> launch -> verify -> bench."""

from appliance.documents.base import Document, Part, write_whole
from appliance.documents.bench import (
    Asked,
    BenchedTopology,
    BenchRecord,
    Cell,
    Distribution,
    Figure,
    KvTransfers,
    LimitShare,
    Repetition,
    RoleThroughput,
    Slo,
    Stamp,
    Workload,
)
from appliance.documents.compare import ComparedFigure, Comparison
from appliance.documents.costs import Bound, CostedTopology, CostedWorker, RankMemory
from appliance.documents.engine import (
    ArchGate,
    Binary,
    EngineReport,
    ForcedSetting,
    KernelLimit,
    KernelStep,
    Pin,
    ServerOption,
    Tool,
    TransferBackend,
    TransportModule,
)
from appliance.documents.findings import Finding, Findings, RuleResult
from appliance.documents.golden import GoldenAnswer, GoldenRecord
from appliance.documents.kernel_bench import BenchedGpu, KernelBench, KernelCase, KernelTime, Microseconds
from appliance.documents.machine import Gpu, Link, MachineReport, NumaNode, PcieLink
from appliance.documents.model import ModelReport
from appliance.documents.plan import Plan, PlannedEngine, PlannedModel, Router, Worker
from appliance.documents.probes import Measure, ProbeRecord, ProbeResult
from appliance.documents.rebuild import RebuildRecord, RebuildReport, RebuiltPart, RecordedPart
from appliance.documents.recon import Recon
from appliance.documents.run import RunRecord
from appliance.documents.run_state import Phase, ProcessState, ProcessStatus, RunState, Status
from appliance.documents.verification import Check, Verification

DOCUMENTS: dict[str, type[Document]] = {
    document.KIND: document
    for document in (
        MachineReport,
        ModelReport,
        EngineReport,
        Recon,
        Plan,
        Findings,
        ProbeRecord,
        GoldenRecord,
        RebuildRecord,
        RebuildReport,
        RunRecord,
        KernelBench,
        BenchRecord,
        Comparison,
        RunState,
        Status,
        Verification,
    )
}

__all__ = [
    "DOCUMENTS",
    "ArchGate",
    "Asked",
    "BenchRecord",
    "BenchedGpu",
    "BenchedTopology",
    "Binary",
    "Bound",
    "Cell",
    "Check",
    "ComparedFigure",
    "Comparison",
    "CostedTopology",
    "CostedWorker",
    "Distribution",
    "Document",
    "EngineReport",
    "Figure",
    "Finding",
    "Findings",
    "ForcedSetting",
    "GoldenAnswer",
    "GoldenRecord",
    "Gpu",
    "KernelBench",
    "KernelCase",
    "KernelLimit",
    "KernelStep",
    "KernelTime",
    "KvTransfers",
    "LimitShare",
    "Link",
    "MachineReport",
    "Measure",
    "Microseconds",
    "ModelReport",
    "NumaNode",
    "Part",
    "PcieLink",
    "Phase",
    "Pin",
    "Plan",
    "PlannedEngine",
    "PlannedModel",
    "ProbeRecord",
    "ProbeResult",
    "ProcessState",
    "ProcessStatus",
    "RankMemory",
    "RebuildRecord",
    "RebuildReport",
    "RebuiltPart",
    "Recon",
    "RecordedPart",
    "Repetition",
    "RoleThroughput",
    "Router",
    "RuleResult",
    "RunRecord",
    "RunState",
    "ServerOption",
    "Slo",
    "Stamp",
    "Status",
    "Tool",
    "TransferBackend",
    "TransportModule",
    "Verification",
    "Worker",
    "Workload",
    "write_whole",
]
