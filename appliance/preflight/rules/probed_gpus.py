"""What the probes of GPUs measured: what hung, what collapsed, what is slow."""

import re

from appliance.preflight.facts import Facts
from appliance.preflight.reading_probes import measures, result
from appliance.preflight.rule import Found, rule

COLLAPSED = 0.4
SLOW_PEER_GB_S = 8.0
"""Between the 2.7 GB/s of collapsed writes and the 37 and more of good ones that reports give for PCIe 5."""
SLOW_PEER_US = 8.0
"""Between 0.4 us, reported with direct peer access, and 14 us without, with room for starting a copy."""
SLOW_SMALL_REDUCE_US = 120.0
"""41 instead of 126 tokens a second are 16 ms more a step; over 86 all-reduces of 43 layers that is 190 us each."""
SLOW_REDUCE_GB_S = 25.0
"""22 GB/s were reported for too few channels."""
SLOW_TRANSFER_GB_S = 4.0
"""Between 0.5 GB/s over TCP and 49 by CUDA IPC."""
AT_ONCE = ", all pairs at once"


@rule(
    "probe-hung",
    "A probe hung and was killed",
    "error",
    needs=["probes.results"],
    fix="look at IOMMU and ACS (rules iommu-with-acs, acs-redirects-peers), then run it again with NCCL_DEBUG=INFO",
    reference="local-inference-lab/rtx6kpro#15, #21; vllm-project/vllm#6893",
)
def probe_hung(facts: Facts):
    """What hangs in a probe hangs in the engine, there without a message and with every GPU at 100 %."""
    for probe in facts.probes.results:
        if probe.status == "hung":
            yield f"{probe.probe}: {probe.reason}"


@rule(
    "probe-write-collapse",
    "Concurrent writes between GPUs collapse",
    "error",
    needs=["probes.results"],
    fix="map each source switch to one destination root (0->4, 1->5, 2->6, 3->7), or topology replicas",
    reference="local-inference-lab/rtx6kpro, hardware/collapse-report.md",
)
def probe_write_collapse(facts: Facts):
    """One pair at a time is fast, all pairs of the rank map at once are a tenth of it: 37 GB/s become 2.7."""
    alone = measures(facts, "peers", " write")
    for name, together in measures(facts, "peers", AT_ONCE).items():
        single = alone.get(name.removesuffix(AT_ONCE))
        if single and together.value < COLLAPSED * single.value:
            yield f"{name.removesuffix(AT_ONCE)}: {single.value:g} GB/s alone, {together.value:g} all at once"


@rule(
    "probe-peer-slow",
    "A pair of GPUs is slow or apart",
    "warning",
    needs=["probes.results"],
    fix="rules acs-redirects-peers, bar1-small, peer-mailbox say what to look at",
    reference="noonghunna/club-3090; NVIDIA/nccl#1999",
)
def probe_peer_slow(facts: Facts):
    """Half of the rate is ACS, a hundredth of it the mailbox, none at all a small BAR1."""
    apart = result(facts, "peers").facts.get("no peer access")
    if apart:
        yield f"no peer access: {apart}"
    for kind in (" write", " read"):
        for name, measure in measures(facts, "peers", kind).items():
            if measure.value < SLOW_PEER_GB_S:
                yield f"{name}: {measure.value:g} GB/s"
    for name, measure in measures(facts, "peers", ", 4 KiB").items():
        if measure.value > SLOW_PEER_US:
            yield f"{name}: {measure.value:g} us"


@rule(
    "probe-small-all-reduce-slow",
    "A small all-reduce takes long",
    "warning",
    needs=["probes.results"],
    fix="another all-reduce path: SGLANG_ENABLE_PCIE_IPC_ALLREDUCE=1 within one node, or NCCL_PROTO=LL",
    reference="local-inference-lab/rtx6kpro#25, optimization/pcie-oneshot-allreduce.md",
)
def probe_small_all_reduce_slow(facts: Facts):
    """A decode step does two a layer, and waits for each: 41 instead of 126 tokens a second were seen."""
    for name, measure in measures(facts, "all-reduce", "KiB").items():
        if measure.value > SLOW_SMALL_REDUCE_US:
            yield f"{name}: {measure.value:g} us"


@rule(
    "probe-all-reduce-narrow",
    "A large all-reduce is slow",
    "warning",
    needs=["probes.results"],
    fix="NCCL_MIN_NCHANNELS=8; NCCL_P2P_LEVEL=SYS; a graph file for this board",
    reference="local-inference-lab/rtx6kpro, NCCL settings; NVIDIA/nccl#2127",
)
def probe_all_reduce_narrow(facts: Facts):
    """Prefill waits for it after every layer: too few channels, or a ring by a fabric that was taken for slow."""
    for name, measure in measures(facts, "all-reduce", "bus bandwidth").items():
        if measure.value < SLOW_REDUCE_GB_S:
            yield f"{name}: {measure.value:g} GB/s"


@rule(
    "probe-kv-transfer-slow",
    "NIXL carries GPU memory by the network's stack",
    "error",
    needs=["probes.results"],
    fix="expandable_segments off, one user and IPC namespace for both workers, nixl-cu13 of the driver's CUDA",
    reference="vllm-project/vllm#52607; ai-dynamo/nixl#1754, #2208; openucx/ucx#11046",
)
def probe_kv_transfer_slow(facts: Facts):
    """Transfers succeed at 0.3 to 0.5 GB/s over TCP on loopback, where CUDA IPC gives 49.

    An error for WRITE, which SGLang uses; a warning for READ, which other engines do.
    """
    probe = result(facts, "nixl-vram")
    rates = {measure.name.removeprefix("VRAM "): measure.value for measure in probe.measures}
    for operation, rate in rates.items():
        carrier = probe.facts.get(f"{operation} is carried by", "an unknown transport")
        if rate < SLOW_TRANSFER_GB_S or re.search(r"\btcp/", carrier):
            yield Found(
                f"{operation}: {rate:g} GB/s by {carrier}", severity=None if operation == "WRITE" else "warning"
            )
