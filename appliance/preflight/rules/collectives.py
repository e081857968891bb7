"""What NCCL and custom all-reduce do on this topology, and which switch writes to which."""

from appliance.preflight.conditions import CUDA_PLAN, GROUP_PLAN, PD_PLAN, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import (
    ENVIRONMENTS,
    PACKAGES,
    environments,
    gpu_links,
    group_links,
    is_nvlink,
    link,
    name_list,
    package,
    release,
    sm_120,
    switch_groups,
)
from appliance.preflight.rule import Found, Undecided, rule

TURIN_FAMILY = 26
ONE_SHOT = "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE"
BROADCOM, GEN5_SWITCHES = "0x1000", {"0xc030", "0xc034"}
"""PEX89xxx (pci.ids, vendor 1000)."""
FILES = ("NCCL_GRAPH_FILE", "NCCL_TOPO_FILE")


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
    "nccl-on-turin",
    "NCCL takes this processor's fabric for a slow one",
    "warning",
    needs=["plan", "machine.processor.family", "machine.processor.model", "machine.links"],
    only_if=[GROUP_PLAN],
    fix='environment.NCCL_PROTO = "LL";  or a graph file made for this board',
    reference="NVIDIA/nccl#2127, NVIDIA/nccl#2036",
)
def nccl_on_turin(facts: Facts):
    """A group across two EPYC 9005 sockets gets a ring at a third of the bandwidth: TTFT 9.1 s instead of 1.1 s."""
    processor = facts.machine.processor
    if processor.family != TURIN_FAMILY or "EPYC" not in processor.model:
        return
    for worker in facts.plan.workers:
        across = "SYS" in group_links(facts.machine, worker.gpus).values()
        told = {"NCCL_PROTO", "NCCL_GRAPH_FILE", "NCCL_ALGO"} & worker.env.keys()
        if across and not told:
            yield f"worker {worker.name}: {name_list(worker.gpus)} across sockets of {processor.model}"


@rule(
    "nccl-few-channels",
    "NCCL chooses its channels itself on PCIe",
    "note",
    needs=["plan", "machine.links"],
    only_if=[GROUP_PLAN],
    fix='environment.NCCL_MIN_NCHANNELS = "8";',
    reference="local-inference-lab/rtx6kpro, NCCL settings",
)
def nccl_few_channels(facts: Facts):
    """Two channels carry 22 GB/s where eight carry more than 40; only a measurement tells."""
    for worker in facts.plan.workers:
        kinds = group_links(facts.machine, worker.gpus).values()
        if kinds and not any(map(is_nvlink, kinds)) and "NCCL_MIN_NCHANNELS" not in worker.env:
            yield f"worker {worker.name}: {len(worker.gpus)} GPUs on PCIe, NCCL_MIN_NCHANNELS unset"


@rule(
    "nccl-file-missing",
    "NCCL is told to read a file that does not exist",
    "error",
    needs=[ENVIRONMENTS],
    fix="unset NCCL_GRAPH_FILE and NCCL_TOPO_FILE, or put the file there",
    reference="local-inference-lab/rtx6kpro, NCCL settings",
)
def nccl_file_missing(facts: Facts):
    """NCCL ends at start-up, or goes on without the topology that was meant, which costs half of the bandwidth."""
    known = (facts.machine.named_files if facts.machine else None) or {}
    unknown = None
    for where, env in environments(facts):
        for name in FILES:
            path = env.get(name)
            if path and known.get(path) is False:
                yield f"{where}: {name}={path}: no such file"
            elif path and path not in known:
                unknown = f"machine.named_files[{path}]"
    if unknown:
        raise Undecided(unknown)


@rule(
    "nccl-older-than-gpu",
    "NCCL is older than its support of sm_120",
    "warning",
    needs=["machine.gpus[].name", PACKAGES],
    only_if=[SEVERAL_GPUS],
    fix="pip install -U nvidia-nccl-cu12 (2.27 or later), or the engine's own pin",
    reference="vllm-project/vllm#19890",
)
def nccl_older_than_gpu(facts: Facts):
    """NCCL 2.26 on two RTX 5090: illegal memory access in the first collective; 2.27 works."""
    nccl = package(facts, "nvidia-nccl-cu13", "nvidia-nccl-cu12")
    if nccl is None:
        raise Undecided("machine.software.packages.nvidia-nccl-cu13")
    gpus = sm_120(facts.machine)
    if len(gpus) > 1 and (release(nccl[1]) or (99,)) < (2, 27):
        yield f"{nccl[0]} {nccl[1]} with {len(gpus)} {gpus[0].name}"


@rule(
    "peer-level-hides-links",
    "NCCL is told not to use peer access",
    "warning",
    needs=[ENVIRONMENTS],
    fix="unset NCCL_P2P_DISABLE; NCCL_P2P_LEVEL=SYS allows peer access across sockets",
    reference="NVIDIA, NCCL user guide: NCCL_P2P_DISABLE, NCCL_P2P_LEVEL",
)
def peer_level_hides_links(facts: Facts):
    """A remedy for a hang that stayed in the environment: every collective goes through host memory."""
    for where, env in environments(facts):
        if env.get("NCCL_P2P_DISABLE", "0") != "0":
            yield f"{where}: NCCL_P2P_DISABLE={env['NCCL_P2P_DISABLE']}"
        if env.get("NCCL_P2P_LEVEL") in ("LOC", "0"):
            yield f"{where}: NCCL_P2P_LEVEL={env['NCCL_P2P_LEVEL']}"


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
