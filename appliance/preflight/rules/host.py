"""The host: NUMA nodes, kernel settings, file systems, what a container or a guest hides."""

from appliance.preflight.conditions import GPUS
from appliance.preflight.facts import Facts, absent
from appliance.preflight.reading import cpus, name_list
from appliance.preflight.rule import Undecided, rule

SLOW_TO_FREEZING = ("btrfs", "zfs", "bcachefs")
FAR = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "overlay")


@rule(
    "numa-balancing-on",
    "The kernel moves pages between NUMA nodes by itself",
    "warning",
    needs=["machine.kernel_settings.numa_balancing"],
    only_if=[GPUS],
    fix='boot.kernel.sysctl."kernel.numa_balancing" = 0;  (now: sysctl -w kernel.numa_balancing=0)',
    reference="local-inference-lab/rtx6kpro, host settings",
)
def numa_balancing_on(facts: Facts):
    """Page faults that sample accesses stall the threads that feed GPUs, and pages that were bound may move."""
    if facts.machine.kernel_settings.numa_balancing and len(facts.machine.numa_nodes) > 1:
        yield f"kernel.numa_balancing is on, with {len(facts.machine.numa_nodes)} NUMA nodes"


@rule(
    "cpu-governor",
    "CPUs do not run at full frequency",
    "note",
    needs=["machine.processor.governor"],
    only_if=[GPUS],
    fix='powerManagement.cpuFreqGovernor = "performance";',
    reference="local-inference-lab/rtx6kpro, host settings",
)
def cpu_governor(facts: Facts):
    """A CPU that wakes up slowly adds microseconds to each kernel launch, thousands of times a second."""
    if facts.machine.processor.governor != "performance":
        yield f"frequency governor of CPU 0: {facts.machine.processor.governor}"


@rule(
    "cpus-offline",
    "Some CPUs are offline",
    "note",
    needs=["machine.processor.online"],
    fix="echo 1 > /sys/devices/system/cpu/cpuN/online, or find out why the firmware took them away",
    reference="lscpu(1)",
)
def cpus_offline(facts: Facts):
    """CPU lists that are computed from counts instead of read name CPUs that are not there."""
    if facts.machine.processor.offline:
        yield f"offline: CPU {facts.machine.processor.offline} of {facts.machine.processor.cpus}"


@rule(
    "copy-on-write-file-system",
    "Weights or caches lie on a copy-on-write file system",
    "warning",
    needs=["machine.file_systems[].type"],
    fix='put models and caches on ext4 or xfs: fileSystems."/models".fsType = "xfs";',
    reference="local-inference-lab/rtx6kpro, host freezes",
)
def copy_on_write_file_system(facts: Facts):
    """Reading hundreds of GB from btrfs or zfs beside pinned memory has frozen hosts."""
    for system in facts.machine.file_systems or []:
        if system.type in SLOW_TO_FREEZING and system.purpose in ("models", "hub cache", "cache", "state"):
            yield f"{system.path} ({system.purpose}) is on {system.type} ({system.mount_point})"


@rule(
    "model-on-network",
    "The model lies on a network or layered file system",
    "note",
    needs=["machine.file_systems[].type"],
    fix="copy the model to a local disk; `appliance preflight --probe` measures how fast it reads",
    reference="proc(5), filesystems",
)
def model_on_network(facts: Facts):
    """Loading takes as long as the network needs, and each worker reads the weights once."""
    for system in facts.machine.file_systems or []:
        if system.type in FAR and system.purpose in ("models", "hub cache"):
            yield f"{system.path} ({system.purpose}) is on {system.type}"


@rule(
    "memory-only-nodes",
    "NUMA nodes without CPUs",
    "note",
    needs=["machine.numa_nodes[].cpus"],
    fix="count nodes that have CPUs; memory of GPUs shows as nodes of its own (GH200, GB200)",
    reference="bytedance/xpu-perf#129",
)
def memory_only_nodes(facts: Facts):
    """Tools that share work out among all nodes give most of it to nodes that have no CPU."""
    without = [node.id for node in facts.machine.numa_nodes if node.cpus == ""]
    if without:
        count = len(facts.machine.numa_nodes)
        yield f"{len(without)} of {count} nodes have no CPU: the first is node {without[0]}"


@rule(
    "gpu-node-unknown",
    "It cannot be told which NUMA node a GPU belongs to",
    "warning",
    needs=["machine.gpus[].index"],
    only_if=[GPUS],
    fix="numactl -H and the BIOS (NPS1, SRAT); in a guest, pass the host's topology through",
    reference="sgl-project/sglang#15678",
)
def gpu_node_unknown(facts: Facts):
    """A worker that cannot be bound takes memory and CPUs from anywhere: a fifth and more of it from the far socket."""
    why = absent(facts.machine, "gpus.numa_node")
    near_several = [gpu.index for gpu in facts.machine.gpus if gpu.numa_affinity and "-" in gpu.numa_affinity]
    if near_several:
        yield f"{name_list(near_several)}: near several NUMA nodes alike, as in a guest or container"
    nodes = [node for node in facts.machine.numa_nodes if node.cpus != ""]
    unknown = [gpu.index for gpu in facts.machine.gpus if gpu.numa_node is None and gpu.index not in near_several]
    if unknown and why:
        raise Undecided("machine.gpus.numa_node")
    if unknown and len(nodes) > 1:
        yield f"{name_list(unknown)}: no NUMA node, on a machine of {len(nodes)}"


@rule(
    "affinity-is-not-the-nodes",
    "A GPU's CPU list is not its NUMA node's",
    "note",
    needs=["machine.gpus[].cpu_affinity", "machine.numa_nodes[].cpus"],
    only_if=[GPUS],
    fix="cat /sys/fs/cgroup/cpuset.cpus.effective; read the list outside the container or job",
    reference="rapidsai/dask-cuda#1358",
)
def affinity_is_not_the_nodes(facts: Facts):
    """nvidia-smi inside a job shows the job's CPUs: taken for the machine's, they bind the next job wrongly."""
    of_node = {node.id: cpus(node.cpus) for node in facts.machine.numa_nodes if node.cpus}
    unlike = [
        gpu.index
        for gpu in facts.machine.gpus
        if gpu.cpu_affinity
        and not gpu.cpu_affinity_cut
        and gpu.numa_node in of_node
        and cpus(gpu.cpu_affinity) != of_node[gpu.numa_node]
    ]
    if unlike:
        yield f"{name_list(unlike)}: CPUs {facts.machine.gpus[0].cpu_affinity}, not all of the node's"


@rule(
    "guest-without-topology",
    "A guest shows one NUMA node for many GPUs",
    "note",
    needs=["machine.gpus[].numa_node", "machine.processor.cpus"],
    fix="pass NUMA nodes and PCIe roots through to the guest (vcpu and numa pinning, pxb-pcie)",
    reference="libvirt, domain XML: numatune and pcie-expander-bus",
)
def guest_without_topology(facts: Facts):
    """Binding to the only node of a guest binds to nothing: half of the memory may be the far socket's."""
    nodes = {gpu.numa_node for gpu in facts.machine.gpus}
    guest = facts.machine.processor.hypervisor
    if guest and len(facts.machine.gpus) > 4 and len(nodes) == 1:
        yield (f"{len(facts.machine.gpus)} GPUs on node {nodes.pop()}, in a guest of {guest}")
