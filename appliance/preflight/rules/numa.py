"""Binding: whether each worker sits at its GPUs' node, and whether it is allowed there."""

from appliance.cpu_list import as_text
from appliance.preflight.conditions import CUDA_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import arguments, cpus
from appliance.preflight.rule import Found, rule


@rule(
    "worker-far-from-gpus",
    "A worker is bound to a NUMA node that its GPUs are not on",
    "error",
    needs=["plan", "machine.gpus[].numa_node"],
    only_if=[CUDA_PLAN],
    fix="services.sglang-appliance.workers.NAME.numaNode = the node of its GPUs;",
    reference="vllm-project/vllm#13855",
)
def worker_far_from_gpus(facts: Facts):
    """Every copy from host to GPU crosses the fabric between sockets: half of the bandwidth, for the whole run."""
    nodes = {gpu.index: gpu.numa_node for gpu in facts.machine.gpus}
    for worker in facts.plan.workers:
        homes = {nodes[index] for index in worker.gpus if nodes.get(index) is not None}
        if worker.numa_node is not None and homes and worker.numa_node not in homes:
            yield f"worker {worker.name}: node {worker.numa_node}, its GPUs on {', '.join(map(str, sorted(homes)))}"


@rule(
    "worker-unbound",
    "A worker is bound to no NUMA node",
    "warning",
    needs=["plan", "machine.gpus[].numa_node", "machine.numa_nodes[].id"],
    only_if=[CUDA_PLAN],
    fix="services.sglang-appliance.workers.NAME.numaNode = the node of its GPUs;",
    reference="NVIDIA/TensorRT-LLM#18117",
)
def worker_unbound(facts: Facts):
    """Without a binding at exec a fifth of the memory has been found on the far node."""
    nodes = {gpu.index: gpu.numa_node for gpu in facts.machine.gpus}
    if len([node for node in facts.machine.numa_nodes if node.cpus != ""]) < 2:
        return
    for worker in facts.plan.workers:
        homes = {nodes.get(index) for index in worker.gpus} - {None}
        if worker.numa_node is None and len(homes) == 1:
            yield f"worker {worker.name}: its GPUs are on node {homes.pop()}"


@rule(
    "worker-node-missing",
    "A worker is bound to a NUMA node that is not there or has no CPU",
    "error",
    needs=["plan", "machine.numa_nodes[].id"],
    only_if=[PLAN],
    fix="make the plan from this machine's own report",
    reference="set_mempolicy(2)",
)
def worker_node_missing(facts: Facts):
    """The worker does not start: the kernel refuses the binding."""
    known = {node.id: node.cpus for node in facts.machine.numa_nodes}
    for worker in facts.plan.workers:
        if worker.numa_node is not None and (worker.numa_node not in known or known[worker.numa_node] == ""):
            state = "has no CPU" if worker.numa_node in known else f"is none of {', '.join(map(str, known))}"
            yield f"worker {worker.name}: node {worker.numa_node} {state}"


@rule(
    "cpuset-excludes-node",
    "The cpuset leaves out CPUs of a worker's NUMA node",
    "error",
    needs=["plan", "machine.cpus_allowed", "machine.numa_nodes[].cpus"],
    only_if=[PLAN],
    fix="AllowedCPUs= of the slice, --cpuset-cpus of the container: give it the whole node",
    reference="sgl-project/sglang#15678, #20437; huggingface/text-generation-inference#3011",
)
def cpuset_excludes_node(facts: Facts):
    """A binding by the host's lists fails inside a cgroup, or binds to CPUs that are not near the GPU.

    An error where no CPU of the node is left, a warning where some are.
    """
    allowed = cpus(facts.machine.cpus_allowed)
    of_node = {node.id: cpus(node.cpus) for node in facts.machine.numa_nodes}
    for worker in facts.plan.workers:
        node = of_node.get(worker.numa_node, set())
        if node and not node <= allowed:
            left = as_text(node & allowed)
            severity = None if not node & allowed else "warning"
            yield Found(f"worker {worker.name}, node {worker.numa_node} ({as_text(node)}): allowed {left}", severity)


@rule(
    "memory-node-forbidden",
    "The cpuset forbids memory of a worker's NUMA node",
    "error",
    needs=["plan", "machine.memory_nodes_allowed"],
    only_if=[PLAN],
    fix="AllowedMemoryNodes= of the slice, --cpuset-mems of the container",
    reference="cpuset(7)",
)
def memory_node_forbidden(facts: Facts):
    """set_mempolicy fails, or memory silently comes from the nodes that are allowed."""
    allowed = cpus(facts.machine.memory_nodes_allowed)
    for worker in facts.plan.workers:
        if worker.numa_node is not None and allowed and worker.numa_node not in allowed:
            nodes = facts.machine.memory_nodes_allowed
            yield f"worker {worker.name}: node {worker.numa_node}; memory is allowed from {nodes}"


@rule(
    "two-owners-of-binding",
    "Engine and launcher both bind a worker",
    "warning",
    needs=["plan"],
    only_if=[CUDA_PLAN],
    fix='environment.SGLANG_AUTO_NUMA_BIND = "0";  and no --numa-node: the launcher binds',
    reference="sgl-project/sglang#15678, #20437",
)
def two_owners_of_binding(facts: Facts):
    """The engine binds again by the host's CPU list, and inside a cgroup wrongly: its binding is on by default."""
    for worker in facts.plan.workers:
        if worker.numa_node is None:
            continue
        if "--numa-node" in arguments(worker):
            yield f"worker {worker.name}: node {worker.numa_node} and --numa-node {arguments(worker)['--numa-node']}"
        elif worker.env.get("SGLANG_AUTO_NUMA_BIND", "1").lower() not in ("0", "false"):
            yield f"worker {worker.name}: node {worker.numa_node}, SGLANG_AUTO_NUMA_BIND not off"
