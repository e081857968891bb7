"""NCCL: what it assumes of this machine, and what it is told."""

from appliance.preflight.conditions import GROUP_PLAN, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import (
    ENVIRONMENTS,
    PACKAGES,
    environments,
    group_links,
    is_nvlink,
    name_list,
    package,
    release,
    sm_120,
)
from appliance.preflight.rule import Undecided, rule

TURIN_FAMILY = 26
FILES = ("NCCL_GRAPH_FILE", "NCCL_TOPO_FILE")


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
