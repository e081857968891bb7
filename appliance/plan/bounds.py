"""What physics allows: bytes over bandwidth, arithmetic over FLOP/s, transfers over links. Bounds, never predictions.

Each is as generous as it can be: caches, kernels, latencies and everything else that a run also does are left out. So a
measurement that is better than a bound is wrong, and one that is near it cannot be made much better.
"""

from appliance.documents import Bound, ModelReport
from appliance.engines.sglang.cuda import memory as sglang
from appliance.hardware.gpu_model import GpuModel

NEVER_READ = {"mtp", "vision", "embedding", "engram"}
"""Components that a decode step without speculation does not read whole."""
PROMPT = 32768
BYTES_OF = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5}
FORMATS = {"mxfp4": "fp4", "nvfp4": "fp4", "fp8": "fp8", "mxfp8": "fp8"}


def decode(model: ModelReport, sheet: GpuModel | None, tp_size: int) -> list[Bound]:
    """The least time of a decode step: the weights of one token's path are read once, over all ranks' bandwidth."""
    active = active_bytes(model)
    if sheet is None or sheet.memory_gb_s is None or active is None:
        return []
    ms = active / tp_size / (sheet.memory_gb_s * 1e9) * 1e3
    formula = f"{active / 1e9:.1f} GB of weights that a token passes / {tp_size} ranks / {sheet.memory_gb_s:.0f} GB/s"
    return [
        bound("decode", "a step, any batch, KV cache not counted", ms, "ms", "least", "memory bandwidth", formula),
        bound("decode", "one request, no speculation", 1e3 / ms, "tok/s", "most", "memory bandwidth", formula),
    ]


def prefill(model: ModelReport, sheet: GpuModel | None, tp_size: int) -> list[Bound]:
    """The most tokens a second of prefill: 2 FLOP a weight of a token's path, attention not counted."""
    if sheet is None or model.parameters_active is None:
        return []
    kind = fastest(model, sheet)
    rate = getattr(sheet, kind) if kind else None
    if rate is None:
        return []
    value = rate * 1e12 * tp_size / (2 * model.parameters_active)
    formula = f"{tp_size} x {rate:.0f} TFLOP/s ({kind}, dense) / 2 x {model.parameters_active / 1e9:.1f} B weights"
    return [bound("prefill", "all chunks full, attention not counted", value, "tok/s", "most", "FLOP/s", formula)]


def transfer(model: ModelReport, gb_s: float | None, way: str, tp_size: int) -> list[Bound]:
    """The least time for the KV cache of a long prompt from a rank of prefill to its rank of decode."""
    per_token = cache_bytes(model, tp_size)
    if gb_s is None or per_token is None:
        return []
    ms = per_token * PROMPT / (gb_s * 1e9) * 1e3
    formula = f"{PROMPT} tokens x {per_token:.0f} B a rank / {gb_s:g} GB/s ({way})"
    return [bound("KV transfer", f"a prompt of {PROMPT} tokens", ms, "ms", "least", "link", formula)]


def all_reduce(model: ModelReport, gb_s: float | None, way: str, tp_size: int) -> list[Bound]:
    """The most tokens a second of prefill that all-reduces leave: two a layer, 2 (n - 1) / n of the hidden state."""
    if gb_s is None or tp_size < 2 or not model.hidden_size or not model.layers:
        return []
    size = 2 * model.layers * model.hidden_size * BYTES_OF["bf16"] * 2 * (tp_size - 1) / tp_size
    formula = f"{gb_s:g} GB/s ({way}) / {size / 1e6:.2f} MB a token (2 a layer, bf16, ring)"
    return [bound("all-reduce", "prefill, nothing overlapped", gb_s * 1e9 / size, "tok/s", "most", "link", formula)]


def bound(of: str, case: str, value: float, unit: str, at: str, binds: str, formula: str) -> Bound:
    """A Bound, to three digits."""
    return Bound(of=of, case=case, value=float(f"{value:.3g}"), unit=unit, at=at, binds=binds, formula=formula)


def active_bytes(model: ModelReport) -> float | None:
    """Bytes of weights that one token's pass reads, over all ranks; None where the formats are not known."""
    entries = [entry for entry in model.quantisation if entry.basis == "tensors"] or model.quantisation
    if not entries or not all(entry.bytes for entry in entries):
        return None
    share = model.experts.top_k / model.experts.routed if model.experts and model.experts.top_k else 1.0
    return sum(
        entry.bytes * (share if entry.component == "routed_experts" else 1.0)
        for entry in entries
        if entry.component not in NEVER_READ
    )


def cache_bytes(model: ModelReport, tp_size: int) -> float | None:
    """Bytes of KV cache of a token on one rank, windows left out: what has to cross for a long prompt."""
    kind = sglang.cache_type(model)
    if model.kv_cache is None or kind is None:
        return None
    size = model.kv_cache.bytes_per_token[kind]
    return size if model.kv_cache.replicated else size / sglang.sharing(model, tp_size)


def fastest(model: ModelReport, sheet: GpuModel) -> str | None:
    """The fastest number format that these weights can be multiplied in on this GPU."""
    formats = {FORMATS.get(entry.format, "bf16") for entry in model.quantisation} or {"bf16"}
    usable = [kind for kind in ("fp4", "fp8", "bf16") if kind in formats and getattr(sheet, kind) is not None]
    if not usable and sheet.bf16 is not None:
        return "bf16"
    return usable[0] if usable else None
