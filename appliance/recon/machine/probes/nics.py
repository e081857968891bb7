"""Network adapters: RDMA devices and interfaces, joined by their PCI address."""

from appliance.documents.machine import Nic, PcieLink
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.probes.kernel_text import pcie_link, whole
from appliance.recon.machine.source import Source

RDMA, NET, PCI = "/sys/class/infiniband", "/sys/class/net", "/sys/bus/pci/devices"


def adapters(source: Source) -> Findings:
    """Adapters on the PCI bus: those with RDMA first and in nvidia-smi's order, since it names these NIC0..."""
    found = Findings()
    if not source.names(NET) and not source.names(RDMA):
        found.add("nics", None, "", "no /sys/class/net")
        return found
    interfaces: dict[str, list[str]] = {}
    for name in source.names(NET):
        address = address_of(source.link(f"{NET}/{name}/device"))
        if address:
            interfaces.setdefault(address, []).append(name)
    rdma = [(address_of(source.link(f"{RDMA}/{name}/device")), name) for name in source.names(RDMA)]
    rdma.sort(key=lambda pair: (pair[0] or "", pair[1]))
    pairs = [(address, device, (interfaces.get(address or "") or [None])[0]) for address, device in rdma]
    taken = {address for address, _ in rdma}
    pairs += [(a, None, name) for a in sorted(interfaces) if a not in taken for name in interfaces[a]]
    nics = [nic(source, f"NIC{place}", *pair) for place, pair in enumerate(pairs)]
    found.add("nics", nics, "/sys/class/infiniband, /sys/class/net", "")
    return found


def nic(source: Source, name: str, address: str | None, device: str | None, interface: str | None) -> Nic:
    """One adapter from its RDMA device, its interface and its PCI device, as far as it has them."""
    port = f"{RDMA}/{device}/ports/1"
    folder = f"{PCI}/{address}"
    driver = source.link(f"{folder}/driver") if address else None
    # "4: ACTIVE" and "400 Gb/sec (4X NDR)" (Documentation/infiniband/sysfs.rst); speed is in Mb/s, -1 without a link
    state = (source.text(f"{port}/state") or "").partition(": ")[2] if device else None
    rate = (source.text(f"{port}/rate") or "").split(" ")[0] if device else ""
    speed = whole(source.text(f"{NET}/{interface}/speed")) if interface else None
    gbps = float(rate) if rate.replace(".", "", 1).isdigit() else (speed / 1000 if speed else None)
    return Nic(
        name=name,
        device=device,
        interface=interface,
        pci_bus_id=address,
        numa_node=whole(source.text(f"{folder}/numa_node")) if address else None,
        driver=driver.rsplit("/", 1)[1] if driver else None,
        state=state or (source.text(f"{NET}/{interface}/operstate") if interface else None),
        link_layer=source.text(f"{port}/link_layer") if device else None,
        speed_gbps=gbps,
        mtu=whole(source.text(f"{NET}/{interface}/mtu")) if interface else None,
        pcie=PcieLink(**pcie_link(source, folder)) if address else PcieLink(),
    )


def address_of(path: str | None) -> str | None:
    """The PCI address at the end of a device's path (or above, for virtio), or None for a device of another bus."""
    for part in reversed((path or "").split("/")):
        if part.count(":") == 2 and "." in part:
            return part
    return None
