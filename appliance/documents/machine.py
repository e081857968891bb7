"""MachineReport: what the machine is. Absent facts are null, never guessed."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part


class PcieLink(Part):
    gen: int | None = None
    width: int | None = None
    max_gen: int | None = None
    max_width: int | None = None


class Gpu(Part):
    index: int
    pci_bus_id: str | None = None
    name: str | None = None
    uuid: str | None = None
    compute_capability: str | None = None
    memory_mib: int | None = None
    numa_node: int | None = None
    cpu_affinity: str | None = None
    pcie: PcieLink = PcieLink()
    bar1_mib: int | None = None
    power_limit_w: float | None = None


class NumaNode(Part):
    id: int
    cpus: str
    memory_mib: int | None = None
    gpus: list[int] = []


class Link(Part):
    """One cell of the link matrix: `kind` as `nvidia-smi topo -m` writes it (NV18, PIX, PXB, PHB, NODE, SYS)."""

    a: str
    b: str
    kind: str


class MachineReport(Document):
    KIND: ClassVar[str] = "MachineReport"
    kind: Literal["MachineReport"] = "MachineReport"
    hostname: str | None = None
    kernel: str | None = None
    cpu_model: str | None = None
    cpus_allowed: str | None = None
    memory_mib: int | None = None
    driver: str | None = None
    gpus: list[Gpu] = []
    numa_nodes: list[NumaNode] = []
    links: list[Link] = []
    sources: dict[str, str] = {}
    """For each fact that was looked for: where it came from, or why it is absent."""
