"""MachineReport: the document of one machine."""

from typing import ClassVar, Literal

from appliance.documents.base import Document
from appliance.documents.machine.gpu import Gpu
from appliance.documents.machine.host import KernelSettings, NumaNode, Processor
from appliance.documents.machine.links import Link, Nic
from appliance.documents.machine.pci import Iommu, PciDevice
from appliance.documents.machine.running import Listener, RunningEngine, Service
from appliance.documents.machine.software import Software
from appliance.documents.machine.storage import FileSystem, ModelFolder


class MachineReport(Document):
    """A list that may be null was not looked at where it is null, and is known to be empty where it is empty."""

    KIND: ClassVar[str] = "MachineReport"
    kind: Literal["MachineReport"] = "MachineReport"
    hostname: str | None = None
    kernel: str | None = None
    cpu_model: str | None = None
    cpus_allowed: str | None = None
    """CPUs that a process may use here (cpuset, container); null: not known."""
    memory_nodes_allowed: str | None = None
    memory_mib: int | None = None
    memory_available_mib: int | None = None
    driver: str | None = None
    gpus: list[Gpu] = []
    gpus_without_driver: list[str] | None = None
    """PCI addresses of NVIDIA GPUs on the bus that the driver does not show: dead, hidden or given away."""
    numa_nodes: list[NumaNode] = []
    numa_distances: list[list[int]] | None = None
    links: list[Link] = []
    nics: list[Nic] | None = None
    processor: Processor = Processor()
    kernel_settings: KernelSettings = KernelSettings()
    pci_devices: list[PciDevice] | None = None
    iommu: Iommu | None = None
    file_systems: list[FileSystem] | None = None
    listeners: list[Listener] | None = None
    services: list[Service] | None = None
    software: Software = Software()
    engines: list[RunningEngine] | None = None
    models: list[ModelFolder] | None = None
    environment: dict[str, str] | None = None
    """Variables about GPUs and engines: of the login that was asked, or as an environment dump lists them."""
    unit_environments: dict[str, dict[str, str]] | None = None
    """What the workers' installed units set, drop-ins included, by unit; empty: none is installed."""
    named_files: dict[str, bool] | None = None
    """Files that NCCL is told to read, by path, and whether they exist; null where that was not looked at."""
    notes: list[str] = []
    """What is odd in what was read: contradictions, cells that could not be told apart."""
    sources: dict[str, str] = {}
    """For each fact that was looked for: where it came from, or why it is absent ("absent: ...")."""
