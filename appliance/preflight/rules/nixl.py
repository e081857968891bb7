"""How the KV cache goes from prefill to decode: NIXL, UCX, and memory that can be shared."""

from appliance.preflight.conditions import CUDA_PLAN, PD_PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import ENVIRONMENTS, arguments, environments
from appliance.preflight.rule import Found, rule

DEFAULT_BACKEND = "mooncake"


@rule(
    "transfer-backend-unset",
    "The KV transfer backend is left to the engine's default",
    "error",
    needs=["plan"],
    only_if=[PD_PLAN],
    fix='services.sglang-appliance.kvTransfer = "nixl";',
    reference="smg-project/smg#2498",
)
def transfer_backend_unset(facts: Facts):
    """The engine's default is Mooncake, which is not installed here, or silently another one than was measured."""
    for worker in facts.plan.workers:
        backend = arguments(worker).get("--disaggregation-transfer-backend")
        if worker.role != "aggregated" and backend is None:
            yield f"worker {worker.name}: unset, which is {DEFAULT_BACKEND}"


@rule(
    "ucx-device-open",
    "UCX may pick a network device that leads nowhere",
    "warning",
    needs=["plan", "machine.nics"],
    only_if=[PD_PLAN, CUDA_PLAN],
    fix='environment.UCX_NET_DEVICES = a device that is up, such as "mlx5_0:1";  or UCX_TLS without network devices',
    reference="sgl-project/sglang#28737",
)
def ucx_device_open(facts: Facts):
    """Transfers hang for 300 s, time out, and come back as 500: UCX took the adapter that has no cable."""
    down = [nic for nic in facts.machine.nics if nic.device and nic.state and "ACTIVE" not in nic.state.upper()]
    names = {nic.device: nic for nic in facts.machine.nics if nic.device}
    for worker in facts.plan.workers:
        if worker.role == "aggregated":
            continue
        chosen = [name.split(":")[0] for name in worker.env.get("UCX_NET_DEVICES", "").split(",") if name]
        wrong = [name for name in chosen if name in names and names[name] in down]
        if wrong:
            yield Found(f"worker {worker.name}: UCX_NET_DEVICES names {', '.join(wrong)}, which is down", severity=None)
        elif down and not chosen and "UCX_TLS" not in worker.env:
            yield f"worker {worker.name}: UCX_NET_DEVICES unset, {len(down)} adapters down ({down[0].device})"


@rule(
    "expandable-segments",
    "CUDA memory that cannot be shared between processes",
    "error",
    needs=[ENVIRONMENTS],
    fix="take expandable_segments:True out of PYTORCH_CUDA_ALLOC_CONF, for both roles",
    reference="ai-dynamo/nixl#1754, ai-dynamo/nixl#1755; local-inference-lab/rtx6kpro",
)
def expandable_segments(facts: Facts):
    """KV transfer falls to TCP at 0.3 GB/s without a word, and PCIe one-shot all-reduce crashes.

    An error for a worker of the plan; a warning for an environment that the plan may be started from.
    """
    for where, env in environments(facts):
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            if "expandable_segments:true" in env.get(name, "").lower().replace(" ", ""):
                severity = None if where.startswith("worker") else "warning"
                yield Found(f"{where}: {name}={env[name]}", severity=severity)


@rule(
    "nixl-backend-missing",
    "NIXL's backend does not load here",
    "error",
    needs=["plan", "engine.transfer_backends"],
    only_if=[PD_PLAN],
    fix="install both nixl and nixl-cu13 (the plugins are in the second), of one version",
    reference="local-inference-lab/rtx6kpro, NIXL",
)
def nixl_backend_missing(facts: Facts):
    """`import nixl` succeeds and the first transfer fails: the plugins are in another package."""
    known = {backend.name: backend for backend in facts.engine.transfer_backends}
    for worker in facts.plan.workers:
        wanted = worker.env.get("SGLANG_DISAGGREGATION_NIXL_BACKEND", "UCX")
        found = known.get(wanted)
        if worker.role != "aggregated" and (found is None or not found.loads):
            yield f"worker {worker.name}: {wanted} {f'does not load ({found.reason})' if found else 'is not there'}"


@rule(
    "ucx-without-cuda",
    "UCX has no CUDA transport here",
    "error",
    needs=["plan", "engine.transport_modules"],
    only_if=[PD_PLAN, CUDA_PLAN],
    fix="install nixl-cu13 for the driver's CUDA; libcuda.so.1 must resolve in the unit",
    reference="vllm-project/vllm#52607, openucx/ucx#11046",
)
def ucx_without_cuda(facts: Facts):
    """GPU memory then goes through TCP on loopback: 0.5 GB/s instead of 49."""
    modules = {module.name: module for module in facts.engine.transport_modules}
    cuda = modules.get("cuda")
    if cuda is None or not cuda.loads:
        yield f"libuct_cuda {f'does not load ({cuda.reason})' if cuda else 'is not shipped'}"


@rule(
    "nixl-versions-unlike",
    "The parts of NIXL are of unlike versions",
    "error",
    needs=["plan", "engine.packages"],
    only_if=[PD_PLAN],
    fix="pin nixl and nixl-cu13 to one version; SGLang imports nixl._api of the first",
    reference="local-inference-lab/rtx6kpro, NIXL",
)
def nixl_versions_unlike(facts: Facts):
    """SGLang imports `nixl`, which loads what is in `nixl-cu13`: one without the other does not start."""
    versions = {name: facts.engine.packages.get(name) for name in ("nixl", "nixl-cu13")}
    if len(set(versions.values())) > 1 or None in versions.values():
        yield ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
