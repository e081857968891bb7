"""EngineReport: the serving engine that is installed in this environment."""

from typing import ClassVar, Literal

from appliance.documents.base import Document
from appliance.documents.engine.binaries import Binary
from appliance.documents.engine.kernels import ArchGate, ForcedSetting, KernelLimit, KernelStep, ServerOption
from appliance.documents.engine.software import Pin, Tool, TransferBackend, TransportModule


class EngineReport(Document):
    """Facts about an installed engine. A list is null where its probe did not run or failed: `sources` says why."""

    KIND: ClassVar[str] = "EngineReport"
    kind: Literal["EngineReport"] = "EngineReport"
    name: Literal["sglang"] = "sglang"
    version: str | None
    """Installed version of the engine; null if it is not installed."""
    python: str
    packages: dict[str, str | None]
    """Installed version of each package that matters to serving; null if it is not installed."""
    arch: str | None = None
    """The GPU architecture that steps, gates and binaries are reported for: sm_120."""
    family: str | None = None
    """The model family that steps and forced settings are reported for: deepseek_v4."""
    pins: list[Pin] | None = None
    steps: list[KernelStep] | None = None
    limits: list[KernelLimit] | None = None
    gates: list[ArchGate] | None = None
    binaries: list[Binary] | None = None
    tools: list[Tool] | None = None
    transfer_backends: list[TransferBackend] | None = None
    transport_modules: list[TransportModule] | None = None
    options: list[ServerOption] | None = None
    forced: list[ForcedSetting] | None = None
    tuned_devices: dict[str, int] | None = None
    """Number of tables of tuned kernel settings that the engine ships for each device name."""
    sources: dict[str, str] = {}
    """For each fact that was looked for: where it came from, or why it is null ("absent: ...")."""
