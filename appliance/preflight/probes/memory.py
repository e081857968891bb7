"""Memory bandwidth from the CPUs of each NUMA node to the memory of each: the right one and the wrong one."""

import ctypes
import mmap
import os
import threading
import time

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe, Subject
from appliance.preflight.reading import cpus

BUFFER = 64 * 2**20
"""More than any cache of one core's share; two of them a thread."""
SECONDS_EACH = 0.4
MOST_THREADS = 16
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


def copy_rate(mine: set[int], memory: int | None) -> float:
    """Bytes read and written a second by copies in the memory of node `memory`, by threads on the CPUs `mine`.

    Affinity and memory policy belong to a thread (sched_setaffinity(2), set_mempolicy(2)): each sets its own before it
    touches its buffers. Raises OSError where the kernel refuses.
    """
    from appliance.launch.numa import bind_memory

    libc = ctypes.CDLL(None)
    libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    count = min(MOST_THREADS, len(mine))
    barrier = threading.Barrier(count)
    copied, failures = [0] * count, []
    deadline = [0.0]

    def work(number: int) -> None:
        try:
            os.sched_setaffinity(0, mine)
            if memory is not None:
                bind_memory(memory)
            source, target = (mmap.mmap(-1, BUFFER) for _ in range(2))
            a, b = (ctypes.addressof(ctypes.c_char.from_buffer(part)) for part in (source, target))
            ctypes.memset(a, 1, BUFFER), ctypes.memset(b, 0, BUFFER)
            if barrier.wait() == 0:
                deadline[0] = time.monotonic() + SECONDS_EACH
            barrier.wait()
            while time.monotonic() < deadline[0]:
                libc.memcpy(b, a, BUFFER)  # ctypes lets other threads run meanwhile
                copied[number] += 2 * BUFFER
        except OSError as error:
            failures.append(error)
            barrier.abort()
        except threading.BrokenBarrierError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    elapsed = time.monotonic() - (deadline[0] - SECONDS_EACH)
    return sum(copied) / elapsed


if __name__ == "__main__":
    run(main)
