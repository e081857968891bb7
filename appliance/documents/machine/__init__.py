"""MachineReport: what a machine is, in parts by theme. Absent facts are null, never guessed."""

from appliance.documents.machine.gpu import Gpu, GpuProcess, PcieLink
from appliance.documents.machine.host import KernelModule, KernelSettings, NumaNode, Processor
from appliance.documents.machine.links import Link, Nic
from appliance.documents.machine.pci import Acs, Aer, Iommu, IommuGroup, PciDevice
from appliance.documents.machine.report import MachineReport
from appliance.documents.machine.running import Listener, RunningEngine, Service
from appliance.documents.machine.software import Software
from appliance.documents.machine.storage import FileSystem, ModelFolder

__all__ = [
    "Acs",
    "Aer",
    "FileSystem",
    "Gpu",
    "GpuProcess",
    "Iommu",
    "IommuGroup",
    "KernelModule",
    "KernelSettings",
    "Link",
    "Listener",
    "MachineReport",
    "ModelFolder",
    "Nic",
    "NumaNode",
    "PciDevice",
    "PcieLink",
    "Processor",
    "RunningEngine",
    "Service",
    "Software",
]
