"""The link matrix of `nvidia-smi topo -m` as parts of a report."""

from appliance.documents.machine import Link, Nic
from appliance.recon.machine.text.found_gpu import Facts
from appliance.recon.machine.text.topology import Topology


def links(topology: Topology) -> list[Link]:
    """Each pair of the matrix once, GPUs before adapters; pairs whose cell is absent or contradictory are left out.

    Goes by the cells that are there, so that a header of thousands of labels without rows costs nothing.
    """
    names = names_of(topology)
    places = {label: place for place, label in enumerate(names)}
    pairs = {
        tuple(sorted((row.label, column), key=places.__getitem__))
        for row in topology.rows.values()
        for column, _ in zip(topology.columns, row.cells, strict=False)
        if column != row.label
    }
    ordered = sorted(pairs, key=lambda pair: (places[pair[0]], places[pair[1]]))
    return [Link(a=names[a], b=names[b], kind=kind) for a, b in ordered if (kind := topology.link(a, b))]


def nics(topology: Topology) -> list[Nic]:
    """The adapters of the matrix under the names that its links use."""
    names = names_of(topology)
    return [Nic(name=names[label], device=topology.devices.get(label)) for label in topology.adapters]


def names_of(topology: Topology) -> dict[str, str]:
    """The name within `links` of each label: its own, and NIC0... for adapters that go by their device's name."""
    gpus = {f"GPU{index}": f"GPU{index}" for index in topology.gpus}
    named = {label: label for label in topology.adapters if label.startswith("NIC")}
    free = (f"NIC{number}" for number in range(len(topology.adapters) + len(named)) if f"NIC{number}" not in named)
    return gpus | {label: named.get(label) or next(free) for label in topology.adapters}


def gpu_facts(topology: Topology) -> dict[int, Facts]:
    """What the rows say about their GPUs: node, node list where it names several, own node, CPUs as shown."""
    found: dict[int, Facts] = {}
    for index in topology.gpus:
        row = topology.rows.get(f"GPU{index}")
        found[index] = {}
        if row:
            single = row.numa is not None and row.numa.isdigit()
            found[index] = {
                "numa_node": int(row.numa) if single else None,
                "numa_affinity": None if single else row.numa,
                "gpu_numa_id": row.gpu_numa_id,
                "cpu_affinity": row.cpu_affinity,
            }
    return found
