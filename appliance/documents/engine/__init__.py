"""EngineReport and its parts."""

from appliance.documents.engine.binaries import Binary
from appliance.documents.engine.kernels import ArchGate, ForcedSetting, KernelLimit, KernelStep, ServerOption
from appliance.documents.engine.report import EngineReport
from appliance.documents.engine.software import Pin, Tool, TransferBackend, TransportModule

__all__ = [
    "ArchGate",
    "Binary",
    "EngineReport",
    "ForcedSetting",
    "KernelLimit",
    "KernelStep",
    "Pin",
    "ServerOption",
    "Tool",
    "TransferBackend",
    "TransportModule",
]
