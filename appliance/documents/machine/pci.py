"""The PCIe tree above GPUs and network adapters, with what redirects peer traffic: ACS and the IOMMU."""

from typing import Literal

from appliance.documents.base import Part
from appliance.documents.machine.gpu import PcieLink


class Acs(Part):
    """Access Control Services of a bridge: what it can do and what is switched on (PCIe specification, 7.7.8)."""

    capable: list[str]
    enabled: list[str]
    """With ReqRedir, CmpltRedir or TransBlk on a path, peer traffic takes the way through the root: slow or stuck."""


class Aer(Part):
    """Errors that a device has counted since boot (PCIe Advanced Error Reporting, the kernel's totals)."""

    correctable: int | None = None
    nonfatal: int | None = None
    fatal: int | None = None


class PciDevice(Part):
    address: str
    parent: str | None = None
    """Address of the bridge above; null below a host bridge."""
    host_bridge: str | None = None
    """Root of the tree as sysfs names it, such as "pci0000:c0"."""
    kind: Literal["gpu", "nic", "root_port", "switch_upstream", "switch_downstream", "bridge", "other"]
    vendor: str | None = None
    device: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    pcie: PcieLink = PcieLink()
    acs: Acs | None = None
    """Null for a device without ACS, and where its configuration space could not be read (see `sources`)."""
    aer: Aer | None = None
    """Null where the kernel keeps no such count."""


class IommuGroup(Part):
    id: int
    type: str | None = None
    """identity (pass-through), DMA or DMA-FQ (translated)."""
    devices: list[str] = []


class Iommu(Part):
    enabled: bool
    """Whether any IOMMU group exists."""
    groups: list[IommuGroup] = []
    """The groups that hold devices of the PCIe tree."""
