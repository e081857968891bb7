"""Prefill and decode as separate workers: what must be alike, and how the KV cache goes from one to the other."""

from appliance.engines.sglang.prefix_cache import decode_can_keep
from appliance.preflight.conditions import PD_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import arguments
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
    """The handshake refuses unlike page sizes and types; unlike attention backends pass it, and the cache is noise."""
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
    "decode-radix-cache-refused",
    "Decode is told to keep a prefix cache that SGLang refuses for this model",
    "error",
    needs=["plan", "model.attention"],
    only_if=[PD_PLAN],
    fix="take disaggregation-decode-enable-radix-cache out of the decode worker's settings",
    reference="SGLang 0.5.23, srt/mem_cache/kv_cache_builder.py, validate_decode_radix_cache",
)
def decode_radix_cache_refused(facts: Facts):
    """For DeepSeek-V4 SGLang keeps one on the unified KV layout alone, and raises otherwise: decode does not start."""
    if facts.model.attention.kind != "V4-compressed":
        return
    for worker in facts.plan.workers:
        unified = worker.env.get("SGLANG_HACK_FLASHMLA_BACKEND") == "unified_kv_triton"
        if (
            worker.role == "decode"
            and "--disaggregation-decode-enable-radix-cache" in arguments(worker)
            and not unified
        ):
            yield f"worker {worker.name}"


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
    """Each turn of a conversation sends all of its prefix again, from prefill to decode.

    Not for models whose decode server SGLang does not let keep one: it would not start.
    """
    if facts.model is not None and not decode_can_keep(facts.model):
        return
    for worker in facts.plan.workers:
        if worker.role == "decode" and "--disaggregation-decode-enable-radix-cache" not in arguments(worker):
            yield f"worker {worker.name}"
