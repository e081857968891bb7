"""The PCIe tree in sysfs: GPUs, adapters, the bridges above them, ACS, and the IOMMU's groups."""

import re
import struct

from appliance.documents.machine import Acs, Aer, Iommu, IommuGroup, Link, PciDevice, PcieLink
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.manifest import PCI_CLASSES
from appliance.recon.machine.probes.kernel_text import pcie_link, whole
from appliance.recon.machine.source import Source

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")
BRIDGE_CLASS = "0x0604"
# PCI Express capability: device/port type in bits 4 to 7 of its flags (PCIe base specification, 7.5.3.2)
PORTS = {4: "root_port", 5: "switch_upstream", 6: "switch_downstream"}
PCI_EXPRESS, ACS = 0x10, 0x0D
ACS_BITS = ["SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"]


def tree(source: Source) -> Findings:
    """GPUs and adapters with every bridge above them, and the IOMMU groups that hold them."""
    found = Findings()
    kinds = {name: (source.text(f"{DEVICES}/{name}/class") or "")[:6] for name in source.names(DEVICES)}
    if not kinds:
        found.add("pci_devices", None, "", "no PCI bus in sysfs")
        found.add("iommu", None, "", "no PCI bus in sysfs")
        return found
    ends = [name for name, kind in kinds.items() if kind in PCI_CLASSES and kind != BRIDGE_CLASS]
    paths = {name: source.link(f"{DEVICES}/{name}") or "" for name in ends}
    wanted = dict.fromkeys(ends)
    for path in paths.values():
        wanted.update(dict.fromkeys(part for part in path.split("/") if part in kinds))
    hidden: list[str] = []
    devices = [device(source, name, kinds[name], hidden) for name in sorted(wanted)]
    found.add("pci_devices", devices, DEVICES, "")
    if hidden:
        found.sources["pci_devices.acs"] = f"absent: configuration space of {len(hidden)} bridges needs root"
    found.add("iommu", iommu(source, devices), "/sys/kernel/iommu_groups", "cannot be read")
    return found


def device(source: Source, name: str, code: str, hidden: list[str]) -> PciDevice:
    """One device of the tree. Bridges whose ACS cannot be read for want of privilege are put in `hidden`."""
    folder = f"{DEVICES}/{name}"
    path = (source.link(folder) or "").split("/")
    parent = path[-2] if len(path) > 1 else ""
    roots = [part for part in path if part.startswith("pci")]
    vendor = source.text(f"{folder}/vendor")
    port, acs = None, None
    if code == BRIDGE_CLASS:
        port, acs, readable = capabilities(source.data(f"{folder}/config"))
        if not readable:
            hidden.append(name)
    group = source.link(f"{folder}/iommu_group")
    driver = source.link(f"{folder}/driver")
    return PciDevice(
        address=name,
        parent=parent if parent.count(":") == 2 else None,
        host_bridge=roots[0] if roots else None,
        kind=kind_of(code, vendor, port),
        vendor=vendor,
        device=source.text(f"{folder}/device"),
        driver=driver.rsplit("/", 1)[1] if driver else None,
        numa_node=whole(source.text(f"{folder}/numa_node")),
        iommu_group=whole(group.rsplit("/", 1)[1]) if group else None,
        pcie=PcieLink(**pcie_link(source, folder)),
        acs=acs,
        aer=errors_counted(source, folder),
    )


def errors_counted(source: Source, folder: str) -> Aer | None:
    """A device's error counts; None where the kernel shows none."""
    texts = {kind: source.text(f"{folder}/aer_dev_{kind}") for kind in ("correctable", "nonfatal", "fatal")}
    totals = {kind: re.search(r"^TOTAL_ERR\w* (\d{1,15})$", text or "", re.MULTILINE) for kind, text in texts.items()}
    counts = {kind: int(total[1]) for kind, total in totals.items() if total}
    return Aer(**counts) if counts else None


def kind_of(code: str, vendor: str | None, port: str | None) -> str:
    """What a device is, from its class, its vendor and the port type of its express capability."""
    if code == BRIDGE_CLASS:
        return port or "bridge"
    if code in GPU_CLASSES:
        return "gpu" if vendor == NVIDIA else "other"
    return "nic" if code.startswith("0x02") else "other"


def capabilities(config: bytes | None) -> tuple[str | None, Acs | None, bool]:
    """Port type and ACS in a configuration space, and whether it was long enough to tell (without root: 64 bytes)."""
    if not config or len(config) < 4096:
        return None, None, False
    port = None
    at, seen = config[0x34] & 0xFC, set()
    while 0x40 <= at <= 0xFC and at not in seen:
        seen.add(at)
        if config[at] == PCI_EXPRESS:
            port = PORTS.get(config[at + 2] >> 4)
        at = config[at + 1] & 0xFC
    acs = None
    at, seen = 0x100, set()
    while 0x100 <= at <= 0xFF8 and at not in seen:
        seen.add(at)
        header = struct.unpack_from("<I", config, at)[0]
        if header in (0, 0xFFFFFFFF):
            break
        if header & 0xFFFF == ACS:
            can, control = struct.unpack_from("<HH", config, at + 4)
            acs = Acs(capable=flags(can), enabled=flags(control))
        at = header >> 20 & 0xFFC
    return port, acs, True


def flags(bits: int) -> list[str]:
    """The names of the set bits of an ACS register."""
    return [name for place, name in enumerate(ACS_BITS) if bits >> place & 1]


def iommu(source: Source, devices: list[PciDevice]) -> Iommu | None:
    """The IOMMU groups of the tree's devices; None where sysfs has no such folder and no device names a group."""
    groups: dict[int, list[str]] = {}
    for entry in devices:
        if entry.iommu_group is not None:
            groups.setdefault(entry.iommu_group, []).append(entry.address)
    base = "/sys/kernel/iommu_groups"
    if not groups:
        return Iommu(enabled=bool(source.names(base))) if "iommu_groups" in source.names("/sys/kernel") else None
    return Iommu(
        enabled=True,
        groups=[
            IommuGroup(id=group, type=source.text(f"{base}/{group}/type"), devices=groups[group])
            for group in sorted(groups)
        ],
    )


def gpu_addresses(devices: list[PciDevice]) -> list[str]:
    """Addresses of the NVIDIA GPUs in bus order, as with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    return sorted(entry.address for entry in devices if entry.kind == "gpu")


def derived_links(names: dict[str, str], devices: list[PciDevice]) -> list[Link]:
    """The link matrix from the tree alone, for machines without nvidia-smi: `names` is label by address.

    The kinds are nvidia-smi's own (NVML's topology levels). Pairs across host bridges whose nodes are not known are
    left out; NVLink does not show in the tree.
    """
    by_address = {entry.address: entry for entry in devices}
    ends = [(label, address) for address, label in names.items() if address in by_address]
    found = []
    for place, (a, first) in enumerate(ends):
        for b, second in ends[place + 1 :]:
            kind = link_kind(by_address, first, second)
            if kind:
                found.append(Link(a=a, b=b, kind=kind))
    return found


def link_kind(devices: dict[str, PciDevice], first: str, second: str) -> str | None:
    """PIX, PXB, PHB, NODE or SYS for two addresses of the tree; None where that cannot be told."""
    a, b = ancestors(devices, first), ancestors(devices, second)
    common = next((address for address in a if address in b), None)
    if common is not None:
        return "PIX" if a.index(common) <= 1 and b.index(common) <= 1 else "PXB"
    one, other = devices[first], devices[second]
    if one.host_bridge is None or other.host_bridge is None:
        return None
    if one.host_bridge == other.host_bridge:
        return "PHB"
    if one.numa_node is None or other.numa_node is None:
        return None
    return "NODE" if one.numa_node == other.numa_node else "SYS"


def ancestors(devices: dict[str, PciDevice], address: str) -> list[str]:
    """The bridges above a device, nearest first."""
    found: list[str] = []
    parent = devices[address].parent
    while parent in devices and parent not in found:
        found.append(parent)
        parent = devices[parent].parent
    return found
