"""What the driver says about GPUs: NVML in a process of its own, otherwise nvidia-smi's text."""

import json
import sys
from pathlib import Path

from appliance.documents.machine import GpuProcess
from appliance.recon.machine import matrix
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.probes import nvml_child
from appliance.recon.machine.source import LocalSource, Output, Source, run_all, run_limited
from appliance.recon.machine.text import smi_query, smi_table
from appliance.recon.machine.text.clean import clean
from appliance.recon.machine.text.found_gpu import Facts
from appliance.recon.machine.text.topology import topologies

NVML_LIMIT_S = 10.0


def from_driver(source: Source, nvml_limit_s: float = NVML_LIMIT_S) -> Findings:
    """GPU facts by index under "driver_gpus", and the driver's versions under "driver_versions"."""
    found = Findings()
    nvml = nvml_facts(nvml_limit_s) if isinstance(source, LocalSource) and source.whole else None
    if nvml and nvml.text is not None:
        data = json.loads(nvml.text)
        gpus = {int(index): as_facts(facts) for index, facts in data["gpus"].items()}
        found.add("driver_gpus", gpus, "NVML", "")
        found.add("driver_versions", data["versions"], "NVML", "")
        found.notes += data["notes"]
        return found
    query, csv, listed = run_all(source, ["smi_query", "smi_csv", "smi_list"]).values()
    if query.text is None and csv.text is None:
        why = "; ".join(dict.fromkeys(problem for problem in (nvml and nvml.problem, query.problem) if problem))
        found.add("driver_gpus", None, "", why)
        return found
    parts, versions = from_text(query.text or "", csv.text or "", listed.text or "")
    found.add("driver_gpus", parts, "nvidia-smi" + (f" ({nvml.problem})" if nvml and nvml.problem else ""), "")
    found.add("driver_versions", versions, "nvidia-smi", "")
    return found


def from_text(query: str, csv: str, listed: str) -> tuple[dict[int, Facts], dict[str, str]]:
    """GPU facts and versions from the three outputs of nvidia-smi; the detailed one first."""
    by_query, query_versions = smi_query.parse(clean(query))
    by_csv, csv_versions = smi_table.parse_csv(clean(csv))
    by_list = smi_table.parse_list(clean(listed))
    merged: dict[int, Facts] = {}
    for part in (by_query, by_csv, by_list):
        for index, facts in part.items():
            gpu = merged.setdefault(index, {})
            gpu.update({name: value for name, value in facts.items() if value is not None and gpu.get(name) is None})
    return merged, csv_versions | query_versions


def nvml_facts(limit_s: float) -> Output:
    """What nvml_child prints, or why nothing came. A process of its own, since a hung driver hangs its caller for good.

    Run as a file, with -P: it imports the standard library and pynvml, and nothing of this package.
    """
    child = Path(nvml_child.__file__)
    reply = run_limited([sys.executable, "-P", str(child)], limit_s)
    if reply.text is None:
        return Output(problem=(reply.problem or "").replace(Path(sys.executable).name, "NVML", 1))
    try:
        data = json.loads(reply.text)
    except ValueError:
        return Output(problem="NVML: unreadable reply")
    return Output(problem=f"NVML: {data['error']}") if "error" in data else reply


def as_facts(data: dict) -> Facts:
    """The child's JSON of one GPU as facts."""
    processes = data.pop("processes", None)
    return data | {"processes": None if processes is None else [GpuProcess(**entry) for entry in processes]}


def link_matrix(source: Source) -> Findings:
    """Links, adapters' names and affinities from `nvidia-smi topo -m`."""
    found = Findings()
    output = source.run("smi_topology")
    matrices = topologies(clean(output.text or ""))
    if not matrices:
        why = output.problem or "nvidia-smi topo -m printed no matrix"
        found.add("links", None, "", why)
        return found
    found.add("links", matrix.links(matrices[0]), "nvidia-smi topo -m", "")
    found.add("topology_gpus", matrix.gpu_facts(matrices[0]), "nvidia-smi topo -m", "")
    found.add("topology_nics", matrix.nics(matrices[0]), "nvidia-smi topo -m", "")
    found.notes += matrices[0].notes
    return found
