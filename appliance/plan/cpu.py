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
from appliance.errors import InputError
from appliance.plan.ports import PortRange

KV_TOKENS = 16384
RUNNING_REQUESTS = 8
MOST_THREADS = 8
DEFAULT_PORTS = PortRange()

COMMON_ARGS = [
    ("--max-total-tokens", str(KV_TOKENS), "KV cache of a fixed size, since a CPU has no memory of its own to fill"),
    ("--max-running-requests", str(RUNNING_REQUESTS), "as many at once as a few cores can serve"),
    ("--sleep-on-idle", None, "an idle scheduler would otherwise keep one core busy"),
    ("--enable-metrics", None, "verify and bench read the worker's counters"),
]
PD_ARGS = [("--disaggregation-transfer-backend", "nixl", "KV cache goes from prefill to decode by NIXL")]
DECODE_ARGS = [
    ("--disaggregation-decode-retraction-backup", "none", "the default keeps a backup in CUDA host memory"),
]
PD_ENV = [
    ("SGLANG_HOST_IP", "127.0.0.1", "prefill and decode meet on loopback, also where there is no other address"),
    (
        "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX",
        "0",
        "sending a cached prefix early needs a CUDA event; without this the second equal prompt ends prefill",
    ),
]
ROUTER_ARGS = [
    ("--worker-startup-check-interval", "1", "the router sees a worker within a second of its start"),
    ("--health-check-interval-secs", "5", "a worker that is gone leaves the rotation in seconds, not in minutes"),
    ("--health-check-timeout-secs", "10", "a health request waits its turn behind a busy batch"),
    ("--health-success-threshold", "1", "a worker that has generated a token is in rotation at once"),
    ("--health-failure-threshold", "2", "one late answer of a busy worker does not take it out"),
    ("--shutdown-grace-period-secs", "5", "stopping waits for requests in flight, but not for minutes"),
    ("--disable-tokenizer-autoload", None, "requests are passed on as text; the workers tokenize"),
    ("--log-level", "warn", "the workers log each request already"),
]


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
    nodes = [node.id for node in machine.numa_nodes if node.cpus]
    workers = WORKERS[topology](nodes, ports)
    threads = threads_each(machine, len(workers))
    workers = [with_common(worker, threads) for worker in workers]
    router = None
    if topology != "single":
        policy = [] if topology == "pd" else [("--policy", "cache_aware", "a prompt goes where its prefix is cached")]
        router = Router(
            port=ports.router,
            metrics_port=ports.router_metrics,
            args=words(ROUTER_ARGS + policy),
            reasons=reasons(ROUTER_ARGS + policy),
        )
    return Plan(
        topology=topology,
        model=PlannedModel(path=model.path, served_name=served_name),
        engine=PlannedEngine(version=engine.version, device="cpu"),
        workers=workers,
        router=router,
        start_timeout_s=300,
        stop_timeout_s=8,
        reasons=[
            f"topology {topology} was asked for",
            "device cpu: the machine has no NVIDIA GPU",
            "stop after 8 s: SGLang drains within 5 s of SIGTERM, and a CPU worker holds no GPU memory to release",
        ],
    )


def prefill_and_decode(nodes: list[int], ports: PortRange) -> list[Worker]:
    """One prefill worker on the first NUMA node, one decode worker on the last."""
    prefill = Worker(
        name="prefill",
        role="prefill",
        numa_node=nodes[0] if nodes else None,
        port=ports.worker(0),
        bootstrap_port=ports.bootstrap(0),
        nccl_port=ports.nccl(0),
        args=words(PD_ARGS),
        env={name: value for name, value, _ in PD_ENV},
        reasons=reasons(PD_ARGS + PD_ENV),
    )
    decode = Worker(
        name="decode",
        role="decode",
        numa_node=nodes[-1] if nodes else None,
        port=ports.worker(1),
        bootstrap_port=ports.bootstrap(1),
        nccl_port=ports.nccl(1),
        args=words(PD_ARGS + DECODE_ARGS),
        env={name: value for name, value, _ in PD_ENV},
        reasons=["decode runs a bootstrap server of its own, on a port of its own"]
        + reasons(PD_ARGS + DECODE_ARGS + PD_ENV),
    )
    return [prefill, decode]


def replicas(nodes: list[int], ports: PortRange) -> list[Worker]:
    """One aggregated worker a NUMA node, and two where there is one node or none."""
    homes = nodes if len(nodes) > 1 else [nodes[0] if nodes else None] * 2
    return [
        Worker(
            name=f"replica-{index}",
            role="aggregated",
            numa_node=node,
            port=ports.worker(index),
            nccl_port=ports.nccl(index),
        )
        for index, node in enumerate(homes)
    ]


def single(nodes: list[int], ports: PortRange) -> list[Worker]:
    """One aggregated worker, on the first NUMA node."""
    home = nodes[0] if nodes else None
    return [Worker(name="single", role="aggregated", numa_node=home, port=ports.worker(0), nccl_port=ports.nccl(0))]


WORKERS: dict[str, Callable[[list[int], PortRange], list[Worker]]] = {
    "pd": prefill_and_decode,
    "replicas": replicas,
    "single": single,
}


def with_common(worker: Worker, threads: int) -> Worker:
    """`worker` with the arguments and environment that every worker on a CPU gets."""
    home = (
        [f"NUMA node {worker.numa_node}: CPUs and memory of one node"]
        if worker.numa_node is not None
        else ["no NUMA node: the machine shows none"]
    )
    env = {
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
    }
    why = [
        f"OMP_NUM_THREADS={threads}: half the CPUs, shared by all workers: spinning threads starve others",
        "HF_HUB_OFFLINE=1: the model is a local folder; a server downloads nothing",
    ]
    return worker.model_copy(
        update={
            "args": words(COMMON_ARGS) + worker.args,
            "env": env | worker.env,
            "reasons": home + reasons(COMMON_ARGS) + worker.reasons + why,
        }
    )


def threads_each(machine: MachineReport, workers: int) -> int:
    """OpenMP threads a worker: half the CPUs divided by the workers, at least 1 and at most MOST_THREADS."""
    return max(1, min(MOST_THREADS, len(cpu_list.parse(machine.cpus_allowed or "0")) // 2 // workers))


def words(settings: list[tuple[str, str | None, str]]) -> list[str]:
    """The argument words of (flag, value, reason) settings."""
    return [word for flag, value, _ in settings for word in (flag, value) if word is not None]


def reasons(settings: list[tuple[str, str | None, str]]) -> list[str]:
    """One line "flag value: reason" for each (flag, value, reason)."""
    return [f"{flag}{'' if value is None else ' ' + value}: {why}" for flag, value, why in settings]
