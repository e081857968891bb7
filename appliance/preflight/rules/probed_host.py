"""What the probes of the host measured, and what has become slower since an earlier run."""

import re

from appliance.documents.probes import Measure
from appliance.preflight.facts import Facts
from appliance.preflight.reading_probes import measures, result
from appliance.preflight.rule import Found, rule

LOST = 0.5
FASTER = 1.2


@rule(
    "probe-port-refused",
    "A planned port cannot be bound",
    "error",
    needs=["probes.results"],
    fix="appliance down, or ss -ltnp 'sport = :PORT'; or plan with another --base-port",
    reference="vllm-project/vllm#39015, gpustack/gpustack#4312",
)
def probe_port_refused(facts: Facts):
    """Found by binding all of them at once, for real."""
    for name, why in result(facts, "ports").facts.items():
        yield f"{name.removeprefix('refused ')} {why}"


@rule(
    "probe-nixl-by-network",
    "NIXL carries main memory by the network's stack",
    "note",
    needs=["probes.results"],
    fix="one user and one PID and IPC namespace for both workers; kernel.yama.ptrace_scope",
    reference="UCX documentation, cma and shared memory transports",
)
def probe_nixl_by_network(facts: Facts):
    """On loopback TCP costs two more copies and a core; the CPU engine and metadata of GPU transfers go this way."""
    for name, carrier in result(facts, "nixl-dram").facts.items():
        if name.endswith("is carried by") and "tcp/" in carrier:
            yield f"{name} {carrier}"


@rule(
    "probe-node-memory",
    "A node's own memory is slower than the other node's",
    "warning",
    needs=["probes.results"],
    fix="numactl -H; BIOS: NPS1, SRAT; in a guest the nodes may be made up",
    reference="sgl-project/sglang#15678",
)
def probe_node_memory(facts: Facts):
    """Binding to the near node is then binding to the far one."""
    rates = {name: m.value for name, m in measures(facts, "memory", "").items() if name.startswith("CPUs")}
    for name, rate in rates.items():
        near = re.fullmatch(r"CPUs of node (\d+), memory of node \1", name)
        others = [
            v for other, v in rates.items() if near and other.startswith(f"CPUs of node {near[1]},") and other != name
        ]
        if near and others and max(others) > 1.2 * rate:
            yield f"CPUs of node {near[1]}: {rate:g} GB/s near, {max(others):g} far"


@rule(
    "probe-disk-slow",
    "The checkpoint reads slower than the start may take",
    "error",
    needs=["probes.results", "plan"],
    fix="a faster or a local disk, or a longer start_timeout_s in the plan",
    reference="Plan.start_timeout_s",
)
def probe_disk_slow(facts: Facts):
    """The start is given up and tried again, for ever. A warning where reading takes half of the time allowed."""
    seconds = measures(facts, "disk", "whole checkpoint at this rate")
    for measure in seconds.values():
        share = measure.value / facts.plan.start_timeout_s
        if share > 0.5:
            said = f"{measure.value:.0f} s to read it once, {facts.plan.start_timeout_s:.0f} s for the whole start"
            yield Found(said, severity=None if share >= 1 else "warning")


@rule(
    "probe-libcuda",
    "The libcuda that resolves is not the driver's",
    "error",
    needs=["probes.results"],
    fix="driver's folder first in LD_LIBRARY_PATH (NixOS: /run/opengl-driver/lib), and no compat or stubs folder",
    reference="local-inference-lab/rtx6kpro, CUDA does not initialise",
)
def probe_libcuda(facts: Facts):
    """A compatibility library of another version, or a stub of the toolkit: no device, error 803 or 34."""
    told = result(facts, "libcuda").facts
    if told.get("cuInit", "CUDA_SUCCESS") != "CUDA_SUCCESS":
        yield f"cuInit of {told.get('library')}: {told['cuInit']}"
    elif re.search(r"/compat/|/stubs/", told.get("library", "")):
        yield f"{told['library']} resolves"


@rule(
    "probe-units-apart",
    "Prefill's and decode's units cannot share memory",
    "error",
    needs=["probes.results"],
    fix="one static user for both, no PrivateIPC, no PrivateUsers, PrivateTmp apart from /dev/shm, no ProtectProc=",
    reference="NixOS/nixpkgs#331069; NVIDIA, CUDA programming guide: interprocess communication",
)
def probe_units_apart(facts: Facts):
    """CUDA IPC across unlike users or namespaces fails: KV caches then go through TCP.

    An error where CUDA IPC fails, a warning where main memory cannot be shared either way.
    """
    probe = result(facts, "sandbox")
    well = {measure.name: bool(measure.value) for measure in probe.measures}
    if well.get("CUDA IPC") is False:
        yield f"CUDA IPC: {probe.facts.get('CUDA IPC')} ({probe.facts.get('sandbox')})"
    if not well.get("shared memory") and not well.get("process_vm_readv"):
        reasons = ", ".join(f"{name}: {probe.facts.get(name)}" for name in ("shared memory", "process_vm_readv"))
        yield Found(f"{reasons} ({probe.facts.get('sandbox')})", severity="warning")


@rule(
    "probe-slower-than-before",
    "A measure has lost half since an earlier run",
    "warning",
    needs=["probes.results", "earlier.results"],
    fix="nvidia-smi -q -d PERFORMANCE,PCIE; rules pcie-link-narrow and pcie-errors; is something else running?",
    reference="NVIDIA/open-gpu-kernel-modules#1151",
)
def probe_slower_than_before(facts: Facts):
    """A link that trained narrower, a card that throttles, a disk that fills up: seen only by comparing."""
    for probe in facts.probes.results:
        before = facts.earlier.result(probe.probe)
        if before is None or before.device != probe.device:
            continue
        old = {measure.name: measure for measure in before.measures}
        for measure in probe.measures:
            was = old.get(measure.name)
            if was and was.unit == measure.unit and lost_half(was.value, measure):
                then = f"{was.value:g} {was.unit} on {facts.earlier.date}"
                yield f"{probe.probe}: {measure.name}: {then}, now {measure.value:g}"


def lost_half(was: float, now: Measure) -> bool:
    """Whether a measure is half of what it was, or twice where less is better."""
    if now.better == "higher":
        return now.value < LOST * was
    return now.better == "lower" and was > 0 and now.value > was / LOST
