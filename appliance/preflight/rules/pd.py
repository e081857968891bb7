"""Prefill and decode as separate workers: what must be alike, and how the KV cache goes from one to the other."""

from appliance.preflight.conditions import CUDA_PLAN, PD_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import ENVIRONMENTS, arguments, environments
from appliance.preflight.rule import Found, rule

ALIKE = {
    "--kv-cache-dtype": ("auto",),
    "--page-size": (),
    "--attention-backend": (),
    "--prefill-attention-backend": (),
    "--decode-attention-backend": (),
    "--dtype": ("auto",),
    "--enable-page-major-kv-layout": (),
    "--swa-full-tokens-ratio": (),
    "--context-length": (),
    "--disaggregation-transfer-backend": (),
}
"""Flags that shape the KV cache or must mean the same on both sides, with the values that are the default's."""
ALIKE_VARIABLES = ["SGLANG_OPT_SM120_DIRECT_SWA_KV", "SGLANG_OPT_USE_TILELANG_INDEXER", "SGLANG_SM120_FLASHMLA_BACKEND"]
DEFAULT_BACKEND = "mooncake"
UNSURE_WITH_WINDOWS = ("sliding", "linear", "mamba")


def sides(facts: Facts):
    """Each (prefill worker, decode worker) of the plan."""
    prefill = [worker for worker in facts.plan.workers if worker.role == "prefill"]
    return [(a, b) for a in prefill for b in facts.plan.workers if b.role == "decode"]


@rule(
    "roles-unlike",
    "Prefill and decode differ in what shapes the KV cache",
    "error",
    needs=["plan"],
    only_if=[PD_PLAN],
    fix="services.sglang-appliance: set it once for both workers",
    reference="sgl-project/sglang#37838; llm-d/llm-d#2500",
)
def roles_unlike(facts: Facts):
    """The handshake refuses unlike page sizes and types; unlike attention backends pass it and fill the cache with noise."""
    for prefill, decode in sides(facts):
        one, other = arguments(prefill), arguments(decode)
        for flag, defaults in ALIKE.items():
            a, b = (None if side.get(flag) in defaults else side.get(flag) for side in (one, other))
            if a != b:
                yield f"{flag}: {a or 'default'} of {prefill.name}, {b or 'default'} of {decode.name}"
        for name in ALIKE_VARIABLES:
            a, b = prefill.env.get(name), decode.env.get(name)
            if a != b:
                yield f"{name}: {a or 'unset'} of {prefill.name}, {b or 'unset'} of {decode.name}"


@rule(
    "roles-unequal-tp",
    "Prefill and decode have unequal tensor parallelism",
    "error",
    needs=["plan", "model.attention"],
    only_if=[PD_PLAN],
    fix="give both workers the same number of GPUs",
    reference="llm-d/llm-d#2433",
)
def roles_unequal_tp(facts: Facts):
    """Sliding windows and recurrent states are not resharded: the client hangs. A warning for plain attention."""
    layers = facts.model.attention.layers
    windows = any(kind.startswith(UNSURE_WITH_WINDOWS) and count for kind, count in layers.items())
    windows = windows or facts.model.attention.kind == "V4-compressed" or bool(facts.model.attention.sliding_window)
    for prefill, decode in sides(facts):
        if prefill.tp_size != decode.tp_size:
            said = f"TP {prefill.tp_size} of {prefill.name}, TP {decode.tp_size} of {decode.name}"
            yield Found(said, severity=None if windows else "warning")


@rule(
    "roles-speculate-unlike",
    "Prefill speculates and decode does not",
    "error",
    needs=["plan"],
    only_if=[PD_PLAN],
    fix="speculate on both, or on decode alone",
    reference="SGLang 0.5.23, srt/disaggregation/nixl/conn.py:1488; sgl-project/sglang#30461",
)
def roles_speculate_unlike(facts: Facts):
    """NIXL refuses a decode that has fewer KV regions than prefill; with drafts on one side acceptance collapses.

    A warning where decode speculates alone: it drafts without the state that prefill would have sent.
    """
    for prefill, decode in sides(facts):
        a, b = (arguments(side).get("--speculative-algorithm") for side in (prefill, decode))
        if a and not b:
            yield f"{prefill.name}: {a}; {decode.name}: none"
        elif a != b:
            yield Found(f"{prefill.name}: {a or 'none'}; {decode.name}: {b}", severity="warning")


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
    "bootstrap-port-unset",
    "A worker's bootstrap port is left to the default",
    "error",
    needs=["plan"],
    only_if=[PD_PLAN],
    fix="give each prefill and decode worker a bootstrap port of its own: decode runs such a server too",
    reference="ray-project/ray#63741",
)
def bootstrap_port_unset(facts: Facts):
    """Both roles listen on 8998 by default: the second of them does not start."""
    for worker in facts.plan.workers:
        if worker.role != "aggregated" and worker.bootstrap_port is None:
            yield f"worker {worker.name}: no bootstrap port"


@rule(
    "nccl-port-unset",
    "A worker's NCCL port is picked by chance",
    "error",
    needs=["plan"],
    only_if=[PLAN],
    fix="services.sglang-appliance.workers.NAME.settings.nccl-port = a port that nobody else has;",
    reference="sgl-project/sglang#34755",
)
def nccl_port_unset(facts: Facts):
    """Two workers that start together pick the same free port: EADDRINUSE for one, now and then."""
    if len(facts.plan.workers) > 1:
        for worker in facts.plan.workers:
            if worker.nccl_port is None:
                yield f"worker {worker.name}: no NCCL port"


@rule(
    "decode-radix-cache-off",
    "Decode keeps no prefix cache",
    "note",
    needs=["plan"],
    only_if=[PD_PLAN],
    fix="settings.disaggregation-decode-enable-radix-cache = true;",
    reference="llm-d/llm-d#2109",
)
def decode_radix_cache_off(facts: Facts):
    """Each turn of a conversation sends all of its prefix again, from prefill to decode."""
    for worker in facts.plan.workers:
        if worker.role == "decode" and "--disaggregation-decode-enable-radix-cache" not in arguments(worker):
            yield f"worker {worker.name}"


@rule(
    "ucx-device-open",
    "UCX may pick a network device that leads nowhere",
    "warning",
    needs=["plan", "machine.nics"],
    only_if=[PD_PLAN, CUDA_PLAN],
    fix='environment.UCX_NET_DEVICES = a device that is up, such as "mlx5_0:1", or UCX_TLS = "cuda_ipc,cuda_copy,sm,self,tcp"',
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
