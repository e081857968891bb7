"""Plans for a machine without a GPU: the same shapes as on GPUs, at a size that two cores can run."""

from collections.abc import Callable

from appliance import cpu_list
from appliance.documents import (
    EngineReport,
    MachineReport,
    ModelReport,
    Plan,
    PlannedEngine,
    PlannedModel,
    Router,
    Worker,
)
from appliance.engines.settings import reasons, variables, words
from appliance.engines.sglang.cpu import settings as sglang
from appliance.engines.smg import settings as smg
from appliance.errors import InputError
from appliance.plan.ports import PortRange

MOST_THREADS = 8
DEFAULT_PORTS = PortRange()
Home = tuple[str, str, int | None]
"""A worker's name, its role and its NUMA node."""


def plan_on_cpu(
    topology: str,
    model: ModelReport,
    machine: MachineReport,
    engine: EngineReport,
    served_name: str,
    ports: PortRange = DEFAULT_PORTS,
) -> Plan:
    """A plan of the given topology ("pd", "replicas", "single") for real SGLang on this machine's CPUs.

    Raises InputError where SGLang is not installed, or where the machine has GPUs, which this would ignore.
    """
    if engine.version is None:
        raise InputError("SGLang is not installed in this environment; a plan pins the version that it was made for")
    if machine.gpus:
        raise InputError(f"this machine has {len(machine.gpus)} NVIDIA GPUs; expected none for a plan on CPUs")
    allowed = cpu_list.parse(machine.cpus_allowed or "")
    nodes = [node.id for node in machine.numa_nodes if cpu_list.parse(node.cpus or "") & allowed]
    homes = HOMES[topology](nodes or [None])
    threads = max(1, min(MOST_THREADS, len(allowed) // 2 // len(homes)))
    router = None
    if topology != "single":
        args = smg.ROUTER_ARGS + (smg.REPLICAS_ARGS if topology == "replicas" else [])
        router = Router(port=ports.router, metrics_port=ports.router_metrics, args=words(args), reasons=reasons(args))
    return Plan(
        topology=topology,
        model=PlannedModel(path=model.path, served_name=served_name),
        engine=PlannedEngine(version=engine.version, device="cpu"),
        workers=[worker(index, name, role, node, threads, ports) for index, (name, role, node) in enumerate(homes)],
        router=router,
        start_timeout_s=300,
        stop_timeout_s=8,
        reasons=[
            f"topology {topology} was asked for",
            "device cpu: the machine has no NVIDIA GPU",
            "stop after 8 s: SGLang drains within 5 s of SIGTERM, and a CPU worker holds no GPU memory to release",
        ],
    )


def prefill_and_decode(nodes: list[int | None]) -> list[Home]:
    """One prefill worker on the first NUMA node, one decode worker on the last."""
    return [("prefill", "prefill", nodes[0]), ("decode", "decode", nodes[-1])]


def replicas(nodes: list[int | None]) -> list[Home]:
    """One aggregated worker a NUMA node, and two where there is one node or none."""
    homes = nodes if len(nodes) > 1 else nodes * 2
    return [(f"replica-{index}", "aggregated", node) for index, node in enumerate(homes)]


def single(nodes: list[int | None]) -> list[Home]:
    """One aggregated worker, on the first NUMA node."""
    return [("single", "aggregated", nodes[0])]


HOMES: dict[str, Callable[[list[int | None]], list[Home]]] = {
    "pd": prefill_and_decode,
    "replicas": replicas,
    "single": single,
}


def worker(index: int, name: str, role: str, node: int | None, threads: int, ports: PortRange) -> Worker:
    """The worker that is number `index` of its plan."""
    args, env = list(sglang.COMMON_ARGS), [sglang.threads(threads), *sglang.MODEL_ENV]
    why = ["no NUMA node: the machine shows none" if node is None else f"NUMA node {node}: CPUs and memory of one node"]
    if role != "aggregated":
        args += sglang.PD_ARGS
        env += sglang.PD_ENV
    if role == "decode":
        args += sglang.DECODE_ARGS
        why.append("decode runs a bootstrap server of its own, on a port of its own")
    return Worker(
        name=name,
        role=role,
        numa_node=node,
        port=ports.worker(index),
        bootstrap_port=None if role == "aggregated" else ports.bootstrap(index),
        nccl_port=ports.nccl(index),
        args=words(args),
        env=variables(env),
        reasons=why + reasons(args + env),
    )
