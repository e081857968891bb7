"""lscpu and `numactl -H`, alone or within an environment dump."""

import re
from dataclasses import dataclass, field

from appliance.documents.machine import Processor
from appliance.recon.machine.text import cpu_text
from appliance.recon.machine.text.values import known, whole

LINE = re.compile(r"\s{0,8}(\S[^:\n]{0,50}?):[ \t]*(.*)$")
NODE = re.compile(r"NUMA node(\d{1,5}) CPU\(s\)$")
NUMACTL = re.compile(r"\s*node (\d{1,5}) (cpus|size|free):\s*(.*)$")
DISTANCES = re.compile(r"\s*(\d{1,5}):((?:\s+\d{1,4})+)\s*$")


@dataclass
class CpuText:
    """What lscpu and numactl say. `nodes` has the CPU list of each node, "" for a node without CPUs."""

    processor: Processor = Processor()
    nodes: dict[int, str] = field(default_factory=dict)
    memory_mib: dict[int, int] = field(default_factory=dict)
    free_mib: dict[int, int] = field(default_factory=dict)
    distances: list[list[int]] | None = None
    nodes_from: str = "lscpu"


def parse(text: str) -> CpuText:
    """Read every lscpu and numactl line of cleaned `text`; the first value of each key counts."""
    values: dict[str, str] = {}
    found = CpuText()
    by_numactl: dict[int, str] = {}
    distances: list[list[int]] = []
    for line in text.split("\n"):
        numactl = NUMACTL.match(line)
        if numactl:
            read_numactl(found, by_numactl, int(numactl[1]), numactl[2], numactl[3])
            continue
        distance = DISTANCES.match(line)
        if distance and int(distance[1]) == len(distances) and by_numactl:
            distances.append([int(word) for word in distance[2].split()])
            continue
        pair = LINE.match(line)
        if not pair:
            continue
        key, value = pair[1].strip(), pair[2].strip()
        node = NODE.match(key)
        if node and (not value or cpu_text.ranges(value)):
            found.nodes.setdefault(int(node[1]), value)
        elif not node:
            values.setdefault(key, value)
    if values.keys() & {"On-line CPU(s) list", "Socket(s)", "CPU(s)", "Thread(s) per core"}:
        found.processor = processor(values)
    if by_numactl and not found.nodes:
        found.nodes, found.nodes_from = by_numactl, "numactl -H"
    if distances and all(len(row) == len(distances) for row in distances):
        found.distances = distances
    return found


def read_numactl(found: CpuText, nodes: dict[int, str], node: int, what: str, value: str) -> None:
    """Take one line of `numactl -H`: CPU ids one by one, or an amount in MB (which are MiB)."""
    words = value.split()
    if what == "cpus":
        if all(word.isdigit() and len(word) < 7 for word in words):
            nodes.setdefault(node, cpu_text.from_ids([int(word) for word in words]))
    elif words and words[0].isdigit() and len(words[0]) < 12:
        (found.memory_mib if what == "size" else found.free_mib).setdefault(node, int(words[0]))


def processor(values: dict[str, str]) -> Processor:
    """A Processor from lscpu's keys."""
    return Processor(
        model=known(values.get("Model name")),
        architecture=known(values.get("Architecture")),
        vendor=known(values.get("Vendor ID")),
        family=whole(values.get("CPU family")),
        sockets=whole(values.get("Socket(s)")),
        cores_per_socket=whole(values.get("Core(s) per socket")),
        threads_per_core=whole(values.get("Thread(s) per core")),
        cpus=whole(values.get("CPU(s)")),
        online=known(values.get("On-line CPU(s) list")),
        offline=known(values.get("Off-line CPU(s) list")),
        hypervisor=known(values.get("Hypervisor vendor")),
    )
