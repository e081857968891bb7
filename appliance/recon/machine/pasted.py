"""A MachineReport from text that somebody pasted: whatever of the known tools' output it holds."""

import json
from pathlib import Path
from typing import BinaryIO

from appliance.documents import MachineReport
from appliance.documents.machine import Gpu, Iommu, IommuGroup, KernelSettings, NumaNode, PciDevice, PcieLink, Software
from appliance.errors import InputError
from appliance.recon.machine import affinity, matrix
from appliance.recon.machine.text import environment_dump, lscpu, lspci, smi_query, smi_table
from appliance.recon.machine.text.clean import as_text, clean
from appliance.recon.machine.text.found_gpu import put_together
from appliance.recon.machine.text.topology import Topology, topologies

LONGEST = 64 * 2**20
EXPECTED = "expected `nvidia-smi topo -m`, `nvidia-smi`, lscpu, an environment dump or a saved MachineReport"


def report_from(data: bytes, where: str) -> MachineReport:
    """The report of pasted text or of a saved report (alone, or under "machine" as `recon --json` prints it).

    Raises InputError with one line where `data`, which came from `where`, holds no fact about a machine.
    """
    if len(data) > LONGEST:
        raise InputError(f"{where}: longer than the {LONGEST} bytes of pasted text that are expected at most")
    text = as_text(data)
    if text.lstrip()[:1] == "{":
        return MachineReport.parse(machine_part(text), where)
    report = report_from_text(clean(text))
    if not any((report.gpus, report.numa_nodes, report.driver, report.cpu_model, report.software.packages)):
        raise InputError(f"{where}: no fact about a machine in {len(data)} bytes; {EXPECTED}")
    return report


def read_file(path: Path) -> bytes:
    """The bytes of the file at `path`, with one too many where it is longer than LONGEST. Raises InputError."""
    try:
        with path.open("rb") as file:
            return beginning(file)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {EXPECTED}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {EXPECTED}") from None


def beginning(file: BinaryIO) -> bytes:
    """What is to be read of a file or of standard input, neither of which need have an end."""
    return file.read(LONGEST + 1)


def machine_part(text: str) -> str:
    """The machine's report within the reports by name that `recon --json` prints; any other text as it is."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(data["machine"]) if isinstance(data, dict) and isinstance(data.get("machine"), dict) else text


def report_from_text(text: str) -> MachineReport:
    """Put together what every parser finds in cleaned `text`. Never raises: text without facts is an empty report."""
    found = topologies(text)
    topology = found[0] if found else Topology([], {}, {})
    cpus = lscpu.parse(text)
    dump = environment_dump.parse(text)
    sessions = environment_dump.parse_sessions(text)
    query, query_versions = smi_query.parse(text)
    table, table_versions = smi_table.parse_table(text)
    csv, csv_versions = smi_table.parse_csv(text)
    listed = smi_table.parse_list(text)
    bus = lspci.parse(text)
    gpus = put_together([query, csv, table, listed, dump.gpus, matrix.gpu_facts(topology)])
    by_address = {device.address: device for device in bus}
    gpus = [with_bus(gpu, by_address.get(gpu.pci_bus_id)) for gpu in with_affinity(gpus, cpus)]
    versions = [query_versions, table_versions, csv_versions, dump.facts, sessions]
    driver = first(source.get("driver") for source in versions)
    nodes = numa_nodes(gpus, cpus)
    processor = cpus.processor
    if processor.hypervisor is None and dump.facts.get("hypervisor"):
        processor = processor.model_copy(update={"hypervisor": dump.facts["hypervisor"]})
    report = MachineReport(
        kernel=sessions.get("kernel") or kernel_of(dump.facts.get("platform")),
        cpu_model=processor.model,
        memory_mib=sum(cpus.memory_mib.values()) or None,
        driver=driver,
        gpus=gpus,
        numa_nodes=nodes,
        numa_distances=cpus.distances,
        links=matrix.links(topology),
        nics=matrix.nics(topology) if topology.adapters else None,
        processor=processor,
        kernel_settings=KernelSettings(cmdline=sessions.get("cmdline")),
        pci_devices=[as_device(device) for device in bus] or None,
        iommu=iommu_groups(bus),
        software=Software(
            os=dump.facts.get("os"),
            libc=dump.facts.get("libc"),
            python=dump.facts.get("python"),
            driver=driver,
            driver_cuda=first(source.get("cuda") for source in versions),
            cuda_toolkit=first((dump.facts.get("cuda_toolkit"), sessions.get("cuda_toolkit"))),
            torch_cuda=dump.facts.get("torch_cuda"),
            fabric_manager=dump.facts.get("fabric_manager"),
            container_toolkit=sessions.get("container_toolkit"),
            docker=sessions.get("docker"),
            packages=dump.packages or None,
        ),
        environment=dump.environment or None,
        notes=notes(found, gpus),
    )
    return report.model_copy(update={"sources": sources(report, found, cpus, query, table, csv, listed)})


def with_affinity(gpus: list[Gpu], cpus: lscpu.CpuText) -> list[Gpu]:
    """The GPUs with the best CPU list that the text has for each."""
    found = []
    for gpu in gpus:
        node = gpu.numa_node
        if node is None and gpu.numa_affinity is None:
            node = affinity.node_of(gpu.cpu_affinity, cpus.nodes)
        changes = affinity.best(gpu.cpu_affinity, node, cpus.nodes)
        found.append(gpu.model_copy(update={"numa_node": node} | changes))
    if cpus.nodes or not affinity.fit_together({gpu.cpu_affinity for gpu in found if gpu.cpu_affinity}):
        return found
    return [gpu.model_copy(update={"cpu_affinity_cut": False}) if gpu.cpu_affinity else gpu for gpu in found]


def with_bus(gpu: Gpu, device: lspci.Listed | None) -> Gpu:
    """`gpu` with what lspci says about its address and nothing else did."""
    if device is None:
        return gpu
    pcie = PcieLink(**(device.link | gpu.pcie.model_dump(exclude_none=True)))
    node = gpu.numa_node if gpu.numa_node is not None else device.numa_node
    return gpu.model_copy(update={"pcie": pcie, "numa_node": node})


def numa_nodes(gpus: list[Gpu], cpus: lscpu.CpuText) -> list[NumaNode]:
    """The nodes that lscpu or numactl list; from GPUs' rows alone, their nodes, with CPUs only where they are whole."""
    of_gpus: dict[int, list[Gpu]] = {}
    for gpu in gpus:
        if gpu.numa_node is not None:
            of_gpus.setdefault(gpu.numa_node, []).append(gpu)
    return [
        NumaNode(
            id=node,
            cpus=cpus.nodes[node] if node in cpus.nodes else shared_list(of_gpus.get(node, [])),
            memory_mib=cpus.memory_mib.get(node),
            free_mib=cpus.free_mib.get(node),
            gpus=[gpu.index for gpu in of_gpus.get(node, [])],
        )
        for node in sorted({*cpus.nodes, *of_gpus})
    ]


def shared_list(gpus: list[Gpu]) -> str | None:
    """The CPU list that all of a node's GPUs show, if nvidia-smi cannot have cut it."""
    lists = {gpu.cpu_affinity for gpu in gpus}
    return lists.pop() if len(lists) == 1 and all(gpu.cpu_affinity_cut is False for gpu in gpus) else None


def as_device(device: lspci.Listed) -> PciDevice:
    """A device of lspci's list as a part of the PCIe tree. Its parent is not in the flat list: null."""
    kinds = {"Root Port": "root_port", "Upstream Port": "switch_upstream", "Downstream Port": "switch_downstream"}
    kind = kinds.get(device.port or "") or kind_by_class(device)
    return PciDevice(
        address=device.address,
        kind=kind,
        device=device.description,
        numa_node=device.numa_node,
        iommu_group=device.iommu_group,
        pcie=PcieLink(**device.link),
        acs=device.acs,
    )


def kind_by_class(device: lspci.Listed) -> str:
    """What a device is by the class and vendor that lspci prints."""
    name = device.class_name
    if "bridge" in name:
        return "bridge"
    if ("3D" in name or "VGA" in name or "Display" in name) and "NVIDIA" in device.description:
        return "gpu"
    return "nic" if "Ethernet" in name or "Infiniband" in name or "Network" in name else "other"


def iommu_groups(bus: list[lspci.Listed]) -> Iommu | None:
    """The IOMMU groups that lspci prints with its devices; None where it prints none (no IOMMU, or too terse)."""
    groups: dict[int, list[str]] = {}
    for device in bus:
        if device.iommu_group is not None:
            groups.setdefault(device.iommu_group, []).append(device.address)
    if not groups:
        return None
    return Iommu(enabled=True, groups=[IommuGroup(id=group, devices=groups[group]) for group in sorted(groups)])


def notes(found: list[Topology], gpus: list[Gpu]) -> list[str]:
    """What is odd in the text, one line each."""
    lines = list(found[0].notes) if found else []
    if len({str(topology.rows) for topology in found}) > 1:
        lines.append(f"{len(found)} unlike link matrices in the text; the first is taken")
    cut = [gpu.index for gpu in gpus if gpu.cpu_affinity_cut]
    if cut:
        lines.append(f"GPU {', '.join(map(str, cut))}: nvidia-smi cut the CPU list; it is not the whole list")
    longer = [gpu.index for gpu in gpus if gpu.cpu_affinity_shown]
    if longer:
        lines.append(f"GPU {', '.join(map(str, longer))}: nvidia-smi cut the CPU list; the node's own list is taken")
    several = [gpu.index for gpu in gpus if gpu.numa_affinity]
    if several:
        lines.append(f"GPU {', '.join(map(str, several))}: near several NUMA nodes alike (guest or container)")
    return lines


def sources(report: MachineReport, found, cpus: lscpu.CpuText, query, table, csv, listed) -> dict[str, str]:
    """For each fact of a pasted text, which tool's output in it gave it, or that the text does not have it."""
    topo = "nvidia-smi topo -m" if found else None
    tools = [("nvidia-smi -q", query), ("nvidia-smi --query-gpu", csv), ("nvidia-smi", table), ("list of GPUs", listed)]
    named = [tool for tool, gpus in tools if gpus]
    if any(gpu.cpu_affinity_shown for gpu in report.gpus):
        cpu_affinity = f"{cpus.nodes_from}, by the GPU's node; nvidia-smi shows less"
    elif any(gpu.cpu_affinity for gpu in report.gpus):
        cut = any(gpu.cpu_affinity_cut is not False for gpu in report.gpus if gpu.cpu_affinity)
        cpu_affinity = f"{topo}, which cuts long lists" if cut else topo
    else:
        cpu_affinity = None
    where = {
        "gpus": ", ".join(named + ([topo] if topo and report.gpus else [])) or None,
        "gpus.numa_node": numa_node_source(report, found, cpus),
        "gpus.cpu_affinity": cpu_affinity,
        "gpus.memory_mib": first(
            tool for tool, gpus in tools if any(facts.get("memory_mib") for facts in gpus.values())
        ),
        "gpus.pcie": ("nvidia-smi -q" if query else "lspci") if any(g.pcie.max_gen for g in report.gpus) else None,
        "numa_nodes": (cpus.nodes_from if cpus.nodes else f"{topo}, nodes of GPUs only") if report.numa_nodes else None,
        "links": topo if report.links else None,
        "nics": topo if report.nics else None,
        "cpu_model": "lscpu" if report.cpu_model else None,
        "driver": "the text" if report.driver else None,
        "processor": "lscpu" if report.processor.cpus else None,
        "pci_devices": "lspci" if report.pci_devices else None,
        "software": "the text" if report.software != Software() else None,
        "environment": "the text" if report.environment else None,
    }
    return {name: source or "absent: not in the text" for name, source in where.items()}


def numa_node_source(report: MachineReport, found: list[Topology], cpus: lscpu.CpuText) -> str | None:
    """Where the GPUs' nodes came from: the matrix, the CPUs that it shows, or lspci."""
    if all(gpu.numa_node is None for gpu in report.gpus):
        return None
    rows = [row for topology in found[:1] for label, row in topology.rows.items() if label.startswith("GPU")]
    if any(row.numa for row in rows):
        return "nvidia-smi topo -m"
    if cpus.nodes and any(row.cpu_affinity for row in rows):
        return f"{cpus.nodes_from}, by the CPUs near the GPU"
    return "lspci"


def kernel_of(platform: str | None) -> str | None:
    """The kernel's version in Python's platform line ("Linux-6.8.0-62-generic-x86_64-with-glibc2.39"), or None."""
    if not platform or not platform.startswith("Linux-"):
        return None
    return platform.removeprefix("Linux-").split("-with-")[0].rsplit("-", 1)[0]


def first(values) -> str | None:
    """The first value that is not None."""
    return next((value for value in values if value), None)
