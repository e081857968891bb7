"""What GPUs reach of one another: BAR1, the driver's peer path, NVLink."""

from appliance.preflight.conditions import SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import gpu_links, is_nvlink, name_list, sm_120
from appliance.preflight.rule import Found, rule

CUBE_MESH = 2
"""V100 machines have one link between some pairs and two between others, by design."""


@rule(
    "bar1-small",
    "BAR1 is smaller than the GPU's memory",
    "error",
    needs=["machine.gpus[].bar1_mib", "machine.gpus[].memory_mib"],
    only_if=[SEVERAL_GPUS],
    fix="BIOS: Above 4G decoding and Resizable BAR; workstation cards: displaymodeselector --gpumode compute",
    reference="local-inference-lab/rtx6kpro, hardware",
)
def bar1_small(facts: Facts):
    """Without a BAR over all of the memory there is no peer access: each transfer goes through the host.

    GeForce cards have no peer access with the stock driver whatever their BAR: a warning for them.
    """
    for gpu in facts.machine.gpus:
        if gpu.bar1_mib and gpu.memory_mib and gpu.bar1_mib < gpu.memory_mib:
            consumer = "GeForce" in (gpu.name or "")
            said = f"GPU {gpu.index}: BAR1 {gpu.bar1_mib} MiB, memory {gpu.memory_mib} MiB"
            yield Found(said, severity="warning" if consumer else None)


@rule(
    "peer-mailbox",
    "Peer access may go through the driver's mailbox",
    "note",
    needs=["machine.kernel_settings.nvidia_parameters", "machine.links"],
    only_if=[SEVERAL_GPUS],
    fix='boot.extraModprobeConfig = "options nvidia NVreg_RegistryDwords=\\"ForceP2P=0x11;RMForceP2PType=1\\"";  '
    "then measure with --probe",
    reference="noonghunna/club-3090; local-inference-lab/rtx6kpro",
)
def peer_mailbox(facts: Facts):
    """Without a PCIe switch between them, sm_120 cards take a slow path: custom all-reduce 15 times slower, or off."""
    wide = {gpu.index for gpu in sm_120(facts.machine)}
    pairs = [pair for pair, kind in gpu_links(facts.machine).items() if kind in ("PHB", "NODE") and set(pair) <= wide]
    forced = "ForceP2P" in facts.machine.kernel_settings.nvidia_parameters.get("RegistryDwords", "")
    if pairs and not forced:
        yield f"{len(pairs)} pairs without a switch between them (first {name_list(pairs[0])}), no ForceP2P key"


@rule(
    "nvlink-uneven",
    "NVLink is not the same between all of its pairs",
    "warning",
    needs=["machine.links"],
    only_if=[SEVERAL_GPUS],
    fix="nvidia-smi nvlink --status -i GPU; reseat the bridge, or reset the GPU that lost a link",
    reference="NVIDIA, NVML API: NvLink",
)
def nvlink_uneven(facts: Facts):
    """One link down slows every collective over that pair, and nothing says so."""
    counts: dict[str, list[tuple[int, int]]] = {}
    for pair, kind in gpu_links(facts.machine).items():
        if is_nvlink(kind):
            counts.setdefault(kind, []).append(pair)
    widest = max((int(kind[2:]) for kind in counts), default=0)
    if len(counts) > 1 and widest > CUBE_MESH:
        fewest = min(counts, key=lambda kind: int(kind[2:]))
        most = max(counts, key=lambda kind: int(kind[2:]))
        pairs = ", ".join(f"{a}-{b}" for a, b in counts[fewest][:4])
        yield f"{fewest} for GPU pairs {pairs}, {most} elsewhere"
