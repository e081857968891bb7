"""The probes of a machine side by side, and their findings as one report."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from appliance.documents import MachineReport
from appliance.documents.machine import Gpu, Nic, NumaNode, PciDevice, Software
from appliance.errors import ProbeIncomplete
from appliance.recon.concurrency import Outcome, Probe, side_by_side
from appliance.recon.machine import affinity
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.probes import gpus, host, nics, pci, running, software, storage
from appliance.recon.machine.probes.kernel_text import pcie_link, whole
from appliance.recon.machine.source import LocalSource, Source
from appliance.recon.machine.text.found_gpu import Facts, as_gpu

PROBE_LIMIT_S = 40.0
"""Longer than the limits of NVML and nvidia-smi together, so that each can say for itself that it was late."""
FIELDS = {
    "processors": ["hostname", "kernel", "cpu_model", "cpus_allowed", "memory_mib", "processor"],
    "numa": ["numa_nodes"],
    "kernel": ["kernel_settings", "driver"],
    "pci": ["pci_devices", "iommu"],
    "nics": ["nics"],
    "gpus": ["gpus.memory_mib"],
    "links": ["links"],
    "file systems": ["file_systems"],
    "models": ["models"],
    "engines": ["engines"],
    "services": ["services"],
    "listeners": ["listeners"],
    "environment": ["environment", "named_files"],
    "units": ["unit_environments"],
    "software": ["software"],
}
"""The facts that each probe is there for: what is missing when it is not back."""

Progress = Callable[[str, Outcome], None]


def machine_report(root: Path = Path("/"), model_roots: list[str] | None = None) -> MachineReport:
    """Report this machine, or files below `root` that look like one. What cannot be read is null.

    Raises ProbeIncomplete only where not one probe came back.
    """
    return report_of(LocalSource(root), model_roots or [])


def probes_of(source: Source, model_roots: list[str]) -> dict[str, Callable[[], Findings]]:
    """The probes by name, the slow ones first."""
    return {
        "gpus": partial(gpus.from_driver, source),
        "links": partial(gpus.link_matrix, source),
        "models": partial(storage.models, source, model_roots),
        "engines": partial(running.engines, source),
        "pci": partial(pci.tree, source),
        "software": partial(software.versions, source),
        "services": partial(running.services, source),
        "listeners": partial(running.listeners, source),
        "environment": partial(running.surroundings, source),
        "units": partial(running.units, source),
        "file systems": partial(storage.file_systems, source, model_roots),
        "processors": partial(host.processors, source),
        "numa": partial(host.numa, source),
        "kernel": partial(host.kernel, source),
        "nics": partial(nics.adapters, source),
    }


def report_of(
    source: Source, model_roots: list[str], limit_s: float = PROBE_LIMIT_S, done: Progress = lambda name, outcome: None
) -> MachineReport:
    """The report of a source. Raises ProbeIncomplete only where every single probe failed or hung."""
    probes = {name: Probe(call, limit_s) for name, call in probes_of(source, model_roots).items()}
    outcomes = side_by_side(probes, done)
    return put_together(source, outcomes)


def put_together(source: Source, outcomes: dict[str, Outcome]) -> MachineReport:
    """One report from what the probes brought back. Raises ProbeIncomplete where none of them did."""
    if all(outcome.problem for outcome in outcomes.values()):
        reasons = "; ".join(dict.fromkeys(outcome.problem or "" for outcome in outcomes.values()))
        raise ProbeIncomplete(f"no probe of the machine came back: {reasons}")
    facts: dict[str, object] = {}
    sources: dict[str, str] = {}
    notes: list[str] = []
    for name, outcome in outcomes.items():
        if outcome.problem:
            sources |= {field: f"absent: {outcome.problem}" for field in FIELDS.get(name, [name])}
            continue
        facts |= outcome.value.facts
        sources |= outcome.value.sources
        notes += outcome.value.notes
    of_driver = facts.pop("driver_gpus", None)
    of_matrix = facts.pop("topology_gpus", {})
    versions = facts.pop("driver_versions", {})
    devices = facts.get("pci_devices") or []
    found, hidden = gpus_of(source, of_driver, of_matrix, devices)
    facts["gpus"] = with_affinity(found, of_matrix, facts.get("numa_nodes") or [])
    facts["numa_nodes"] = with_gpus(facts.get("numa_nodes") or [], facts["gpus"])
    facts["nics"] = named_nics(facts.get("nics"), facts.pop("topology_nics", []))
    facts["gpus_without_driver"] = hidden if of_driver is not None and "pci_devices" in facts else None
    if not facts.get("links"):
        derive_links(facts, sources, devices)
    facts["driver"] = versions.get("driver") or facts.get("driver")
    if versions.get("driver"):
        sources["driver"] = sources["driver_versions"]
    known_software = facts.get("software") or Software()
    facts["software"] = known_software.model_copy(
        update={"driver": facts["driver"], "driver_cuda": versions.get("cuda")}
    )
    if hidden and of_driver is not None:
        notes.append(f"{len(hidden)} NVIDIA GPUs on the bus are not shown by the driver: {', '.join(hidden)}")
    driver_source = sources.pop("driver_gpus", "absent: the driver was not asked")
    sources.pop("driver_versions", None), sources.pop("topology_gpus", None), sources.pop("topology_nics", None)
    bus = "/sys/bus/pci/devices, by bus address"
    sources["gpus"] = f"{driver_source}, {bus}" if of_driver is not None else f"{bus} (driver {driver_source})"
    sources["gpus.memory_mib"] = driver_source
    sources["gpus.numa_node"] = "sysfs" if devices else "nvidia-smi topo -m"
    return MachineReport(**facts, notes=notes, sources=dict(sorted(sources.items())))


def gpus_of(
    source: Source, of_driver: dict[int, Facts] | None, of_matrix: dict[int, Facts], devices: list[PciDevice]
) -> tuple[list[Gpu], list[str]]:
    """The GPUs in the driver's order, or in bus order without it, and the addresses that the driver does not show."""
    on_bus = pci.gpu_addresses(devices)
    listed = of_driver if of_driver is not None else {index: {"pci_bus_id": a} for index, a in enumerate(on_bus)}
    found = []
    for index, facts in sorted(listed.items()):
        address = facts.get("pci_bus_id")
        merged: Facts = {name: value for name, value in of_matrix.get(index, {}).items() if value is not None}
        merged |= {name: value for name, value in facts.items() if value is not None}
        if address in on_bus:
            folder = f"{pci.DEVICES}/{address}"
            # the kernel's view of link and node; its CPU list is whole, while nvidia-smi's may be cut
            merged["pcie"] = facts.get("pcie", {}) | pcie_link(source, folder)
            node = whole(source.text(f"{folder}/numa_node"))
            merged["numa_node"] = node if node is not None else merged.get("numa_node")
            cpus = source.text(f"{folder}/local_cpulist")
            if cpus:
                merged |= {"cpu_affinity": cpus, "cpu_affinity_cut": False}
        found.append(as_gpu(index, merged))
    shown = {gpu.pci_bus_id for gpu in found}
    return found, [address for address in on_bus if address not in shown]


def with_affinity(found: list[Gpu], of_matrix: dict[int, Facts], nodes: list[NumaNode]) -> list[Gpu]:
    """The GPUs with the best CPU list where sysfs had none."""
    cpus = {node.id: node.cpus for node in nodes if node.cpus}
    return [
        gpu
        if gpu.cpu_affinity_cut is False
        else gpu.model_copy(update=affinity.best(of_matrix.get(gpu.index, {}).get("cpu_affinity"), gpu.numa_node, cpus))
        for gpu in found
    ]


def with_gpus(nodes: list[NumaNode], found: list[Gpu]) -> list[NumaNode]:
    """The nodes with the indices of their GPUs."""
    return [
        node.model_copy(update={"gpus": [gpu.index for gpu in found if gpu.numa_node == node.id]}) for node in nodes
    ]


def named_nics(found: list[Nic] | None, of_matrix: list[Nic]) -> list[Nic] | None:
    """The adapters under the names that the link matrix uses; those that it leaves out are numbered after it."""
    if found is None or not of_matrix:
        return found if found is not None else (of_matrix or None)
    names = {nic.device: nic.name for nic in of_matrix if nic.device}
    free = iter(f"NIC{n}" for n in range(len(found) + len(of_matrix) + 1) if f"NIC{n}" not in set(names.values()))
    renamed = [nic.model_copy(update={"name": names.get(nic.device) or next(free)}) for nic in found]
    return sorted(renamed, key=lambda nic: int(nic.name[3:]))


def derive_links(facts: dict[str, object], sources: dict[str, str], devices: list[PciDevice]) -> None:
    """Put links from the PCIe tree where nvidia-smi gave none, and say so."""
    names = {gpu.pci_bus_id: f"GPU{gpu.index}" for gpu in facts["gpus"] if gpu.pci_bus_id}
    if not names:
        return
    names |= {nic.pci_bus_id: nic.name for nic in facts.get("nics") or [] if nic.pci_bus_id}
    facts["links"] = pci.derived_links(names, devices)
    why = sources.get("links", "absent: not looked for").removeprefix("absent: ")
    if facts["links"]:
        sources["links"] = f"derived from the PCIe tree; NVLink does not show there ({why})"
