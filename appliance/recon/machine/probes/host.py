"""Processors, memory, NUMA nodes and the kernel's settings, from /proc and sysfs."""

import re

from appliance.documents.machine import KernelModule, KernelSettings, NumaNode, Processor
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.probes.kernel_text import kib_to_mib, pairs, whole
from appliance.recon.machine.source import Source

MODULES = re.compile(r"nvidia\w*|gdrdrv|vfio_pci|vfio_iommu_type1")
NEUTRAL_PARAMETERS = {"0", "", '""', "4294967295", "(null)"}


def processors(source: Source) -> Findings:
    """Who the machine is, its processors and what of them may be used here."""
    found = Findings()
    cpuinfo = pairs(source.text("/proc/cpuinfo"))
    status = pairs(source.text("/proc/self/status"))
    memory = pairs(source.text("/proc/meminfo"))
    hostname = source.text("/proc/sys/kernel/hostname")
    kernel = source.text("/proc/sys/kernel/osrelease")
    found.add("hostname", hostname, "/proc/sys/kernel/hostname", "cannot be read")
    found.add("kernel", kernel, "/proc/sys/kernel/osrelease", "cannot be read")
    found.add("cpu_model", cpuinfo.get("model name"), "/proc/cpuinfo", "/proc/cpuinfo names none")
    allowed = "/proc/self/status: what this login may use"
    found.add("cpus_allowed", status.get("Cpus_allowed_list"), allowed, "/proc/self/status does not say")
    found.add("memory_nodes_allowed", status.get("Mems_allowed_list"), allowed, "/proc/self/status does not say")
    found.add("memory_mib", kib_to_mib(memory.get("MemTotal")), "/proc/meminfo", "cannot be read")
    found.add("memory_available_mib", kib_to_mib(memory.get("MemAvailable")), "/proc/meminfo", "cannot be read")
    found.add("processor", processor(source, cpuinfo), "/proc/cpuinfo, /sys/devices/system/cpu", "cannot be read")
    return found


def processor(source: Source, cpuinfo: dict[str, str]) -> Processor | None:
    """The processors; None where neither /proc/cpuinfo nor sysfs shows any."""
    cpus = "/sys/devices/system/cpu"
    packages = {
        source.text(f"{cpus}/{name}/topology/physical_package_id")
        for name in source.names(cpus)
        if re.fullmatch(r"cpu\d+", name)
    } - {None}
    cores, siblings = whole(cpuinfo.get("cpu cores")), whole(cpuinfo.get("siblings"))
    present = source.text(f"{cpus}/present")
    if not cpuinfo and present is None:
        return None
    guest = "hypervisor" in cpuinfo.get("flags", "").split()
    return Processor(
        model=cpuinfo.get("model name"),
        architecture=(source.run("architecture").text or "").strip() or None,
        vendor=cpuinfo.get("vendor_id"),
        family=whole(cpuinfo.get("cpu family")),
        sockets=len(packages) or None,
        cores_per_socket=cores,
        threads_per_core=siblings // cores if cores and siblings else None,
        cpus=count(present),
        online=source.text(f"{cpus}/online"),
        offline=source.text(f"{cpus}/offline"),
        hypervisor=(source.text("/sys/class/dmi/id/sys_vendor") or "unknown") if guest else None,
        governor=source.text(f"{cpus}/cpu0/cpufreq/scaling_governor"),
    )


def count(cpus: str | None) -> int | None:
    """How many CPUs a kernel list names, or None."""
    parts = [part.partition("-") for part in (cpus or "").split(",") if part]
    if not parts or not all(first.isdigit() and (last or first).isdigit() for first, _, last in parts):
        return None
    return sum(int(last or first) - int(first) + 1 for first, _, last in parts)


def numa(source: Source) -> Findings:
    """The NUMA nodes with CPUs, memory and distances, by node id; their GPUs are put in later."""
    found = Findings()
    base = "/sys/devices/system/node"
    ids = sorted(int(name[4:]) for name in source.names(base) if re.fullmatch(r"node\d{1,6}", name))
    nodes = []
    for node in ids:
        memory = pairs(source.text(f"{base}/node{node}/meminfo"))
        nodes.append(
            NumaNode(
                id=node,
                cpus=source.text(f"{base}/node{node}/cpulist") or "",
                memory_mib=kib_to_mib(memory.get(f"Node {node} MemTotal")),
                free_mib=kib_to_mib(memory.get(f"Node {node} MemFree")),
            )
        )
    found.add("numa_nodes", nodes or None, base, "the kernel shows no NUMA nodes")
    rows = [(source.text(f"{base}/node{node}/distance") or "").split() for node in ids]
    square = rows and all(len(row) == len(rows) and all(cell.isdigit() for cell in row) for row in rows)
    distances = [[int(cell) for cell in row] for row in rows] if square else None
    found.add("numa_distances", distances, base, "the kernel shows no distances")
    return found


def kernel(source: Source) -> Findings:
    """The kernel's command line, the modules that matter with their parameters, and the driver's version."""
    found = Findings()
    names = [name for name in source.names("/sys/module") if MODULES.fullmatch(name)]
    modules = [
        KernelModule(
            name=name,
            version=source.text(f"/sys/module/{name}/version"),
            parameters=parameters(source, f"/sys/module/{name}/parameters"),
        )
        for name in names
    ]
    huge = re.search(r"\[(\w+)\]", source.text("/sys/kernel/mm/transparent_hugepage/enabled") or "")
    balancing = source.text("/proc/sys/kernel/numa_balancing")
    settings = KernelSettings(
        cmdline=source.text("/proc/cmdline"),
        numa_balancing=None if balancing is None else balancing != "0",
        transparent_hugepage=huge[1] if huge else None,
        modules=modules if source.names("/sys/module") else None,
        nvidia_parameters=nvidia_parameters(source),
    )
    read = settings != KernelSettings()
    found.add("kernel_settings", settings if read else None, "/proc/cmdline, /sys/module", "cannot be read")
    driver = driver_version(source.text("/proc/driver/nvidia/version"))
    found.add("driver", driver, "/proc/driver/nvidia/version", "no NVIDIA driver loaded")
    return found


def parameters(source: Source, folder: str) -> dict[str, str] | None:
    """A module's parameters by name; None where none can be read."""
    values = {name: source.text(f"{folder}/{name}") for name in source.names(folder)}
    return {name: value for name, value in values.items() if value is not None} or None


def nvidia_parameters(source: Source) -> dict[str, str] | None:
    """The driver's registry keys that are set (such as RegistryDwords with ForceP2P); None without the file."""
    text = source.text("/proc/driver/nvidia/params")
    if text is None:
        return None
    return {name: value for name, value in pairs(text).items() if value not in NEUTRAL_PARAMETERS}


def driver_version(text: str | None) -> str | None:
    """The version in /proc/driver/nvidia/version, or None."""
    words = [word for word in (text or "").split() if re.fullmatch(r"\d{3}\.\d[\d.]{0,12}", word)]
    return words[0] if words else None
