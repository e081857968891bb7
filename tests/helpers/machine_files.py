"""Machines made of files, as the kernel shows them below /proc and /sys; written from its documentation."""

import struct
from pathlib import Path

LINK = {
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}
GPU = {"vendor": "0x10de", "device": "0x2bb5", "class": "0x030200", "numa_node": "0", "local_cpulist": "0-31"} | LINK
NIC = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020700", "numa_node": "0"} | LINK
BRIDGE = {"vendor": "0x1000", "device": "0xc030", "class": "0x060400", "numa_node": "0"} | LINK


def write(root: Path, files: dict[str, str]) -> None:
    """Write text files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def pci_device(address: str, **changes) -> dict[str, str]:
    """The files of a GPU, changed as told, by path; flat, with no bridge above it."""
    return {f"sys/bus/pci/devices/{address}/{name}": value for name, value in (GPU | changes).items()}


def place(
    root: Path, path: str, base: dict[str, str], config: bytes | None = None, group: int | None = None, **changes
):
    """Put a device at `path` of the tree ("pci0000:00/0000:00:01.0/..."), with its link from the bus's folder."""
    folder = root / "sys/devices" / path
    write(folder, base | changes)
    if config is not None:
        (folder / "config").write_bytes(config)
    if group is not None:
        target = root / f"sys/kernel/iommu_groups/{group}"
        target.mkdir(parents=True, exist_ok=True)
        (folder / "iommu_group").symlink_to(target)
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / folder.name).symlink_to(folder)


def bridge_config(port: int, acs_capable: int = 0, acs_enabled: int = 0) -> bytes:
    """A configuration space: PCI Express capability of that port type at 0x60, ACS behind AER in the extended part."""
    config = bytearray(4096)
    config[0x34] = 0x40
    config[0x40:0x42] = bytes([0x01, 0x60])  # power management, then on to 0x60
    config[0x60:0x64] = struct.pack("<BBH", 0x10, 0, port << 4 | 2)
    config[0x100:0x104] = struct.pack("<I", 0x0001 | 1 << 16 | (0x150 << 20 if acs_capable else 0))
    if acs_capable:
        config[0x150:0x158] = struct.pack("<IHH", 0x000D | 1 << 16, acs_capable, acs_enabled)
    return bytes(config)


ROOT_PORT, UPSTREAM, DOWNSTREAM = 4, 5, 6


def two_sockets(root: Path) -> Path:
    """Two nodes; on node 0 a switch with two GPUs and an adapter, on node 1 two GPUs at root ports of their own."""
    write(
        root,
        {
            "proc/cmdline": "root=/dev/sda1 iommu=pt",
            "proc/cpuinfo": "model name\t: AMD EPYC 9575F 64-Core Processor\ncpu family\t: 26\nflags\t: fpu sse",
            "proc/meminfo": "MemTotal:       1584000000 kB\nMemAvailable:   1500000000 kB",
            "proc/self/status": "Cpus_allowed_list:\t0-63\nMems_allowed_list:\t0-1",
            "proc/mounts": "/dev/sda1 / ext4 rw 0 0\ntank /tank\\040of zfs rw 0 0",
            "sys/devices/system/node/node0/cpulist": "0-31",
            "sys/devices/system/node/node0/distance": "10 32",
            "sys/devices/system/node/node1/cpulist": "32-63",
            "sys/devices/system/node/node1/distance": "32 10",
            "sys/kernel/iommu_groups/7/type": "DMA-FQ",
            "sys/module/nvidia_uvm/version": "580.95.05",
            "sys/module/nvidia_uvm/parameters/uvm_disable_hmm": "Y",
            "proc/driver/nvidia/params": 'RegistryDwords: "ForceP2P=0x11"\nMobile: 4294967295\nEnableMSI: 1\nOther: 0',
        },
    )
    port, switch = "pci0000:00/0000:00:01.0", "pci0000:00/0000:00:01.0/0000:01:00.0"
    place(root, port, BRIDGE, bridge_config(ROOT_PORT, 0x1F, 0x1D))
    place(root, switch, BRIDGE, bridge_config(UPSTREAM))
    for number in range(3):
        down = f"{switch}/0000:02:0{number}.0"
        place(root, down, BRIDGE, bridge_config(DOWNSTREAM, 0x5F, 0x00))
    place(root, f"{switch}/0000:02:00.0/0000:03:00.0", GPU, group=7)
    place(root, f"{switch}/0000:02:01.0/0000:04:00.0", GPU)
    place(root, f"{switch}/0000:02:02.0/0000:05:00.0", NIC)
    for bus, number in ((0x81, 1), (0x91, 2)):
        place(root, f"pci0000:80/0000:80:0{number}.0", BRIDGE, bridge_config(ROOT_PORT, 0x1F, 0), numa_node="1")
        path = f"pci0000:80/0000:80:0{number}.0/0000:{bus:02x}:00.0"
        place(root, path, GPU, numa_node="1", local_cpulist="32-63", current_link_speed="2.5 GT/s PCIe")
    adapter = root / "sys/bus/pci/devices/0000:05:00.0"
    port_files = {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}
    write(root / "sys/class/infiniband/mlx5_0/ports/1", port_files)
    (root / "sys/class/infiniband/mlx5_0/device").symlink_to(adapter)
    write(root / "sys/class/net/ib0", {"operstate": "up", "mtu": "4092"})
    (root / "sys/class/net/ib0/device").symlink_to(adapter)
    write(root / "sys/class/net/lo", {"operstate": "unknown", "mtu": "65536"})
    return root
