"""What NCCL and custom all-reduce do on this topology, and which switch writes to which."""

from appliance.preflight.conditions import CUDA_PLAN, GROUP_PLAN, PD_PLAN, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import (
    gpu_links,
    group_links,
    is_nvlink,
    link,
    name_list,
    switch_groups,
)
from appliance.preflight.rule import Found, rule

ONE_SHOT = "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE"
BROADCOM, GEN5_SWITCHES = "0x1000", {"0xc030", "0xc034"}
"""PEX89xxx (pci.ids, vendor 1000)."""


@rule(
    "rank-map-splits-switch",
    "GPUs behind one switch send their KV cache to several roots",
    "warning",
    needs=["plan", "machine.links"],
    only_if=[PD_PLAN, CUDA_PLAN, SEVERAL_GPUS],
    fix="order decode's GPUs so that each pair behind a switch writes to one pair: 0->4, 1->5, 2->6, 3->7",
    reference="local-inference-lab/rtx6kpro, hardware/collapse-report.md",
)
def rank_map_splits_switch(facts: Facts):
    """Posted writes of one PEX890xx partition to two roots at once collapse: 37 GB/s become 2.7."""
    groups = switch_groups(facts.machine)
    prefill = [worker for worker in facts.plan.workers if worker.role == "prefill"]
    decode = [worker for worker in facts.plan.workers if worker.role == "decode"]
    for source in prefill:
        for target in decode:
            reached: dict[int, dict[int, str]] = {}
            for a, b in zip(source.gpus, target.gpus, strict=False):
                if not is_nvlink(link(facts.machine, a, b) or ""):
                    reached.setdefault(groups.get(a, a), {}).setdefault(groups.get(b, b), f"{a}->{b}")
            for ways in reached.values():
                if len(ways) > 1:
                    yield f"{source.name} to {target.name}: one switch writes {' and '.join(ways.values())}"


@rule(
    "posted-write-collapse",
    "A board with switches whose concurrent writes may collapse",
    "note",
    needs=["plan", "machine.pci_devices[].vendor", "machine.pci_devices[].device"],
    only_if=[PD_PLAN, CUDA_PLAN, SEVERAL_GPUS],
    fix="appliance preflight --plan PLAN --probe: only writes of all pairs at once show it",
    reference="local-inference-lab/rtx6kpro#25, hardware/collapse-report.md",
)
def posted_write_collapse(facts: Facts):
    """`nvidia-smi topo -m` shows nothing unusual on such a board, and one pair at a time is fast."""
    switches = {d.device for d in facts.machine.pci_devices if d.vendor == BROADCOM and d.device in GEN5_SWITCHES}
    if switches and facts.probes is None:
        yield f"Broadcom PCIe 5 switches (1000:{', '.join(sorted(switches))}), not probed yet"


@rule(
    "one-shot-across-roots",
    "One-shot all-reduce over links without a switch",
    "warning",
    needs=["plan", "machine.links"],
    only_if=[GROUP_PLAN],
    fix=f"unset {ONE_SHOT}, or let `preflight --probe` show that it completes",
    reference="local-inference-lab/rtx6kpro#21, optimization/pcie-oneshot-allreduce.md",
)
def one_shot_across_roots(facts: Facts):
    """On PHB paths it has never completed; over 8 GPUs across sockets it loses 4-16 % where 4 in one socket gain."""
    for worker in facts.plan.workers:
        if worker.env.get(ONE_SHOT, "0").lower() not in ("0", "", "false"):
            far = {kind for kind in group_links(facts.machine, worker.gpus).values() if kind in ("PHB", "SYS")}
            if far:
                yield f"worker {worker.name}: {ONE_SHOT}={worker.env[ONE_SHOT]} over {', '.join(sorted(far))} links"


@rule(
    "worker-spans-sockets",
    "A worker's GPUs are on several NUMA nodes although one node has enough",
    "warning",
    needs=["plan", "machine.gpus[].numa_node"],
    only_if=[GROUP_PLAN],
    fix="give the worker GPUs of one NUMA node",
    reference="NVIDIA/go-gpuallocator#17; local-inference-lab/rtx6kpro, optimization/pcie-oneshot-allreduce.md",
)
def worker_spans_sockets(facts: Facts):
    """Where all pairs score alike, a chooser takes one card of each socket, and every all-reduce crosses the fabric."""
    nodes = {gpu.index: gpu.numa_node for gpu in facts.machine.gpus}
    links = gpu_links(facts.machine)
    for worker in facts.plan.workers:
        of_worker = {nodes.get(index) for index in worker.gpus} - {None}
        enough = any(list(nodes.values()).count(node) >= len(worker.gpus) for node in of_worker)
        joined = links and all(is_nvlink(kind) for kind in group_links(facts.machine, worker.gpus).values())
        if len(of_worker) > 1 and enough and not joined:
            yield Found(
                f"worker {worker.name}: {name_list(worker.gpus)} on nodes {', '.join(map(str, sorted(of_worker)))}"
            )
