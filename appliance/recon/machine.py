"""This machine, from /proc and sysfs: needs no driver, no privilege and no command."""

import os
import platform
from pathlib import Path

from appliance.documents import Gpu, MachineReport, NumaNode, PcieLink

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA controller, 3D controller
GENERATION_BY_GT_PER_S = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def machine_report(root: Path = Path("/")) -> MachineReport:
    """Report the machine whose /proc and /sys lie below `root`. Never raises: what cannot be read is null."""
    gpus = nvidia_gpus(root)
    nodes = numa_nodes(root, gpus)
    return MachineReport(
        hostname=platform.node() or None,
        kernel=platform.release() or None,
        cpu_model=colon_value(root / "proc/cpuinfo", "model name"),
        cpus_allowed=colon_value(root / "proc/self/status", "Cpus_allowed_list"),
        memory_mib=kib_to_mib(colon_value(root / "proc/meminfo", "MemTotal")),
        driver=driver_version(root),
        gpus=gpus,
        numa_nodes=nodes,
        sources={
            "hostname": "uname",
            "kernel": "uname",
            "cpu_model": "/proc/cpuinfo",
            "cpus_allowed": "/proc/self/status",
            "memory_mib": "/proc/meminfo",
            "driver": "/proc/driver/nvidia/version" if driver_version(root) else "absent: no NVIDIA driver loaded",
            "gpus": "/sys/bus/pci/devices, by bus address",
            "numa_nodes": "/sys/devices/system/node" if nodes else "absent: the kernel shows no NUMA nodes",
            "links": "absent: not looked for",
        },
    )


def numa_nodes(root: Path, gpus: list[Gpu]) -> list[NumaNode]:
    """The NUMA nodes with their CPUs ("0-31"), memory and the indices of their GPUs, by node id."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = []
    for folder in sorted(folders, key=lambda folder: int(folder.name.removeprefix("node"))):
        node = int(folder.name.removeprefix("node"))
        nodes.append(
            NumaNode(
                id=node,
                cpus=text_of(folder / "cpulist") or "",
                memory_mib=kib_to_mib(colon_value(folder / "meminfo", f"Node {node} MemTotal")),
                gpus=[gpu.index for gpu in gpus if gpu.numa_node == node],
            )
        )
    return nodes


def nvidia_gpus(root: Path) -> list[Gpu]:
    """The NVIDIA GPUs on the PCI bus, numbered in bus order as with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    devices = [
        folder
        for folder in sorted((root / "sys/bus/pci/devices").glob("*"))
        if text_of(folder / "vendor") == NVIDIA and (text_of(folder / "class") or "")[:6] in DISPLAY_CLASSES
    ]
    return [
        Gpu(
            index=index,
            pci_bus_id=folder.name,
            numa_node=known_node(text_of(folder / "numa_node")),
            cpu_affinity=text_of(folder / "local_cpulist"),
            pcie=PcieLink(
                gen=generation(text_of(folder / "current_link_speed")),
                width=whole(text_of(folder / "current_link_width")),
                max_gen=generation(text_of(folder / "max_link_speed")),
                max_width=whole(text_of(folder / "max_link_width")),
            ),
        )
        for index, folder in enumerate(devices)
    ]


def driver_version(root: Path) -> str | None:
    """Version of the loaded NVIDIA kernel driver, or None."""
    text = text_of(root / "proc/driver/nvidia/version") or ""
    versions = [word for word in text.split() if word.count(".") >= 1 and word.replace(".", "").isdigit()]
    return versions[0] if versions else None


def text_of(path: Path) -> str | None:
    """The stripped text of a small kernel file, or None if it cannot be read or is empty."""
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def colon_value(path: Path, key: str) -> str | None:
    """The value of the first `key: value` line in a kernel file, or None."""
    for line in (text_of(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip() or None
    return None


def kib_to_mib(value: str | None) -> int | None:
    """ "24684172 kB" as whole MiB, or None."""
    number = whole((value or "").removesuffix(" kB"))
    return None if number is None else number // 1024


def whole(value: str | None) -> int | None:
    """A whole number from its decimal text, or None."""
    return int(value) if value and value.isascii() and value.isdigit() else None


def known_node(value: str | None) -> int | None:
    """The kernel writes -1 where the firmware names no node: that is null, not a node."""
    return whole(value)


def generation(speed: str | None) -> int | None:
    """PCIe generation of a link speed such as "32.0 GT/s PCIe", or None (PCIe base specification)."""
    return GENERATION_BY_GT_PER_S.get((speed or "").split(" ")[0])


def usable_cpus() -> int:
    """Number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))
