"""Memory bandwidth from the CPUs of each NUMA node to the memory of each: the right one and the wrong one."""

import os

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.memory_copy import MOST_THREADS, copy_rate
from appliance.preflight.probes.probe import LiveProbe, Subject
from appliance.preflight.reading import cpus

MOST_NODES = 4


def specify(subject: Subject) -> dict:
    """The nodes that have CPUs this process may use, with those CPUs."""
    allowed = os.sched_getaffinity(0)
    nodes = {node.id: sorted(cpus(node.cpus) & allowed) for node in subject.machine.numa_nodes}
    return {"nodes": [[node, mine] for node, mine in nodes.items() if mine][:MOST_NODES]}


PROBE = LiveProbe(
    name="memory",
    title="memory bandwidth by NUMA node",
    module=__name__,
    limit_s=8,
    why_not=lambda subject: None if specify(subject)["nodes"] else "the kernel shows no NUMA node with CPUs",
    specify=specify,
)


def main(spec: dict, teller: Teller) -> None:
    """Copy within the memory of each node, from the CPUs of each node."""
    nodes = [node for node, _ in spec["nodes"]]
    for node, mine in spec["nodes"]:
        for memory in nodes:
            teller.doing(f"copying in the memory of node {memory} from CPUs of node {node}")
            try:
                rate = copy_rate(set(mine), memory)
            except OSError as error:
                if len(nodes) > 1:
                    raise
                teller.fact("binding", f"refused ({error.strerror}); it is the only node")
                rate = copy_rate(set(mine), None)
            teller.measure(f"CPUs of node {node}, memory of node {memory}", rate / 1e9, "GB/s")
    teller.fact("threads", str(min(MOST_THREADS, *(len(mine) for _, mine in spec["nodes"]))))


if __name__ == "__main__":
    run(main)
