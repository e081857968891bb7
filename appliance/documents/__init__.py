"""The typed documents that flow from stage to stage: recon -> plan -> preflight -> launch -> verify -> bench."""

from appliance.documents.base import Document, Part, write_whole
from appliance.documents.engine import EngineReport
from appliance.documents.golden import GoldenAnswer, GoldenRecord
from appliance.documents.kernel_bench import BenchedGpu, KernelBench, KernelCase, KernelTime, Microseconds
from appliance.documents.machine import Gpu, Link, MachineReport, NumaNode, PcieLink
from appliance.documents.model import ModelReport
from appliance.documents.plan import Plan, PlannedEngine, PlannedModel, Router, Worker
from appliance.documents.run import Check, Distribution, RunRecord, ServeCell
from appliance.documents.run_state import Phase, ProcessState, ProcessStatus, RunState, Status

KINDS = (MachineReport, ModelReport, EngineReport, Plan, GoldenRecord, RunRecord, KernelBench, RunState, Status)
DOCUMENTS: dict[str, type[Document]] = {document.KIND: document for document in KINDS}

__all__ = [
    "DOCUMENTS",
    "BenchedGpu",
    "Check",
    "Distribution",
    "Document",
    "EngineReport",
    "GoldenAnswer",
    "GoldenRecord",
    "Gpu",
    "KernelBench",
    "KernelCase",
    "KernelTime",
    "Link",
    "MachineReport",
    "Microseconds",
    "ModelReport",
    "NumaNode",
    "Part",
    "Phase",
    "PcieLink",
    "Plan",
    "PlannedEngine",
    "PlannedModel",
    "ProcessState",
    "ProcessStatus",
    "Router",
    "RunRecord",
    "RunState",
    "ServeCell",
    "Status",
    "Worker",
    "write_whole",
]
