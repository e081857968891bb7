"""The GPUs themselves: whether all are there, alike, free and cool, and whether driver and modules serve them."""

from appliance.preflight.conditions import GPUS, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import capability, name_list
from appliance.preflight.rule import Condition, Found, rule

HOT_C = 85
IDLE_MIB = 1024
"""What an idle driver, a display and monitoring take; an engine takes far more."""
FEW = 4

ON_THE_BUS = Condition(
    ("machine.gpus",),
    lambda facts: bool(facts.machine.gpus or facts.machine.gpus_without_driver),
    "there is no NVIDIA GPU on the bus",
)


@rule(
    "gpu-hidden",
    "GPUs on the bus that the driver does not show",
    "error",
    needs=["machine.gpus_without_driver"],
    only_if=[ON_THE_BUS],
    fix="journalctl -k -g 'NVRM|Xid'; nvidia-smi -r, then power the machine off and on; vfio-pci holds some on purpose",
    reference="Lei-010/hermes-agent",
)
def gpu_hidden(facts: Facts):
    """A card that fell off the bus, or was given to a guest: a plan for eight GPUs starts on seven and fails late."""
    if facts.machine.gpus_without_driver:
        yield f"not shown by the driver: {', '.join(facts.machine.gpus_without_driver)}"


@rule(
    "gpu-count-odd",
    "An odd number of GPUs",
    "warning",
    needs=["machine.gpus[].index"],
    only_if=[GPUS],
    fix="compare `lspci -d 10de:` with the machine's manifest; container: --gpus all",
    reference="Lei-010/hermes-agent",
)
def gpu_count_odd(facts: Facts):
    """Machines with many GPUs have an even number: one is dead, hidden, or not given to this container."""
    count = len(facts.machine.gpus)
    if count > FEW and count % 2:
        yield f"{count} GPUs"


@rule(
    "gpus-unlike",
    "Unlike GPUs in one machine",
    "warning",
    needs=["machine.gpus[].name"],
    only_if=[SEVERAL_GPUS],
    fix="give each worker GPUs of one kind, with CUDA_DEVICE_ORDER=PCI_BUS_ID",
    reference="vllm-project/vllm#19741",
)
def gpus_unlike(facts: Facts):
    """Kernels are chosen by the first GPU; a group goes at the pace of its slowest and the memory of its smallest."""
    names = {gpu.name for gpu in facts.machine.gpus if gpu.name}
    if len(names) > 1:
        yield f"{len(names)} kinds: {', '.join(sorted(names))}"


@rule(
    "gpu-hot",
    "A GPU is hot or throttled",
    "warning",
    needs=["machine.gpus[].temperature_c", "machine.gpus[].throttle_reasons"],
    only_if=[GPUS],
    fix="look at airflow and fans; nvidia-smi -pl WATTS lowers the limit",
    reference="ormandj/sglang-glm53-flash-sm120#11",
)
def gpu_hot(facts: Facts):
    """Clocks fall by half without a message; a card that is hot when idle locks itself under load."""
    for gpu in facts.machine.gpus:
        if gpu.temperature_c is not None and gpu.temperature_c >= HOT_C:
            yield f"GPU {gpu.index}: {gpu.temperature_c} C"
        if gpu.throttle_reasons:
            yield f"GPU {gpu.index}: clocks held down by {', '.join(gpu.throttle_reasons)}"


@rule(
    "gpu-power-capped",
    "A GPU's power limit is below its default",
    "note",
    needs=["machine.gpus[].power_limit_w", "machine.gpus[].power_limit_default_w"],
    only_if=[GPUS],
    fix="nvidia-smi -pl DEFAULT, if the cap is not wanted; say so beside every figure if it is",
    reference="ormandj/sglang-glm53-flash-sm120#11",
)
def gpu_power_capped(facts: Facts):
    """Figures of capped cards are compared with figures of others."""
    for gpu in facts.machine.gpus:
        if gpu.power_limit_w and gpu.power_limit_default_w and gpu.power_limit_w < gpu.power_limit_default_w:
            yield f"GPU {gpu.index}: {gpu.power_limit_w:.0f} W of {gpu.power_limit_default_w:.0f} W"


@rule(
    "gpu-in-use",
    "A GPU is in use",
    "warning",
    needs=["machine.gpus[].memory_used_mib"],
    only_if=[GPUS],
    fix="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv; stop what is not meant to run",
    reference="Lei-010/hermes-agent, other traffic",
)
def gpu_in_use(facts: Facts):
    """Engines size their cache by the memory that is free at start; measurements beside other load are 20-47 % low."""
    planned = {gpu for worker in facts.plan.workers for gpu in worker.gpus} if facts.plan else set()
    for gpu in facts.machine.gpus:
        if (gpu.memory_used_mib or 0) > IDLE_MIB and (not planned or gpu.index in planned):
            holders = ", ".join(f"{entry.name or 'process'} (pid {entry.pid})" for entry in gpu.processes or [])
            yield f"GPU {gpu.index}: {gpu.memory_used_mib} MiB used{f' by {holders}' if holders else ''}"


@rule(
    "gpu-partitioned",
    "A GPU is partitioned (MIG)",
    "warning",
    needs=["machine.gpus[].mig_enabled|machine.environment"],
    only_if=[GPUS],
    fix="nvidia-smi -mig 0, or give one worker one instance: no peer access among instances",
    reference="vllm-project/vllm#17047",
)
def gpu_partitioned(facts: Facts):
    """Instances are addressed by UUID, which engines that expect a number refuse, and have no peer access."""
    enabled = [gpu.index for gpu in facts.machine.gpus if gpu.mig_enabled]
    if enabled:
        yield f"{name_list(enabled)}: MIG is enabled"
    visible = (facts.machine.environment or {}).get("CUDA_VISIBLE_DEVICES", "")
    if "MIG-" in visible:
        yield f"CUDA_VISIBLE_DEVICES={visible}"


@rule(
    "compute-capability-mixed",
    "GPUs of several architectures in one worker",
    "error",
    needs=["plan", "machine.gpus[].index"],
    only_if=[GPUS],
    fix="plan each worker over GPUs of one architecture",
    reference="vllm-project/vllm#19741",
)
def compute_capability_mixed(facts: Facts):
    """Tensor parallelism over two architectures picks kernels by the first, which the others cannot run."""
    by_index = {gpu.index: gpu for gpu in facts.machine.gpus}
    for worker in facts.plan.workers:
        found = {capability(by_index[index]) for index in worker.gpus if index in by_index} - {None}
        if len(found) > 1:
            kinds = ", ".join(f"sm_{major}{minor}" for major, minor in sorted(found))
            yield Found(f"worker {worker.name}: {kinds}")
