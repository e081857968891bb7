"""Network adapters, and the matrix of links among GPUs and adapters."""

from appliance.documents.base import Part
from appliance.documents.machine.gpu import PcieLink


class Link(Part):
    """A pair of the link matrix, once: `kind` as `nvidia-smi topo -m` writes it (NV18, PIX, PXB, PHB, NODE, SYS).

    `a` and `b` are GPU0... and NIC0..., the GPU or the lower number first.
    """

    a: str
    b: str
    kind: str


class Nic(Part):
    name: str
    """NIC0...: the name within `links`."""
    device: str | None = None
    """RDMA device, such as mlx5_0."""
    interface: str | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    state: str | None = None
    link_layer: str | None = None
    speed_gbps: float | None = None
    mtu: int | None = None
    pcie: PcieLink = PcieLink()
