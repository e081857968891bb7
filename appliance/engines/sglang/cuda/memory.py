"""How SGLang divides a GPU's memory, written out from its source so that a plan can say what fits before anything runs.

SGLang 0.5.23: srt/arg_groups/memory_hook.py `handle_gpu_memory_settings` (chunk of prefill, largest graph, reserve),
srt/mem_cache/kv_cache_configurator.py `_profile_available_bytes` (KV pool = what is free after the weights, less the
reserve), srt/model_executor/pool_configurator.py (bytes of a token). Sizes of the reserve are SGLang's own rule of
thumb; what a run really leaves free is in its log ("avail mem").
"""

from dataclasses import dataclass

from appliance.documents import ModelReport

MIB = 1024**2
DEFAULT_WINDOW_RATIO = 0.8
"""Tokens in the pool of windowed layers for each token of the others (swa_full_tokens_ratio, hybrid models)."""
V4_WINDOW_RATIO = 0.1
"""The same for DeepSeek-V4 (srt/arg_groups/model_overrides/deepseek_v4.py)."""
V4_PAGE = 256
V4_ALIGNMENT = 576
"""A page of rows is filled up to a multiple of so many bytes (deepseek_v4_memory_pool.py)."""
V4_SLOT_ROWS = 128
"""Rows of the ratio-128 compressor's state a request slot, without speculation."""
V4_SLOTS = 256 + 1 + 2
"""V4's own most running requests, and the slots that no request has (`_get_c128_state_fixed_bytes`)."""
V4_STATE_ROWS = 8
"""Rows of the ratio-4 compressor's state a page, without speculation (deepseek_v4_memory_pool.py)."""


@dataclass(frozen=True)
class Defaults:
    """What SGLang chooses by the size of the memory: tokens of a prefill chunk, requests of the largest graph."""

    chunk: int
    graph: int


def defaults(capacity: int, tp_size: int) -> Defaults:
    """SGLang's choice for a GPU of `capacity` bytes."""
    mib = capacity / MIB
    few = tp_size < 4
    if mib < 20 * 1024:
        return Defaults(2048, 8)
    if mib < 35 * 1024:
        return Defaults(4096, 48 if few else 160)
    if mib < 60 * 1024:
        return Defaults(4096, 32 if few else 160)
    if mib < 160 * 1024:
        return Defaults(8192, 256 if few else 512)
    return Defaults(16384, 512)


def reserve(capacity: int, tp_size: int, role: str, latent: bool) -> int:
    """Bytes that SGLang keeps free of weights and KV cache on each GPU. latent: MLA, DSA or V4 attention."""
    chosen = defaults(capacity, tp_size)
    tokens = max(chosen.graph, 2048) if role == "decode" else max(chosen.chunk, 2048)
    mib = 512 + tokens * 1.5 + tp_size / 8 * 1024
    if role != "prefill":
        mib += chosen.graph * 2
    if role != "decode":
        mib += 1536 if latent else graphs_of_prefill(chosen.chunk) * 8
    if capacity > 60 * 1024 * MIB:
        mib = max(mib, 10 * 1024)
    return int(mib * MIB)


def graphs_of_prefill(chunk: int) -> int:
    """How many sizes SGLang captures up to a chunk (cuda_graph_hook.generate_prefill_cuda_graph_batch_sizes)."""
    steps = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256), (4608, chunk + 1, 512))
    return sum(size <= chunk for step in steps for size in range(*step))


def cache_type(model: ModelReport) -> str | None:
    """Type of the KV cache where nothing is set: what the checkpoint declares, fp8 for V4, else bf16."""
    cache = model.kv_cache
    if cache is None:
        return None
    declared = (cache.declared_dtype or "").lower()
    wanted = "fp8" if "fp8" in declared or "bf16" not in cache.bytes_per_token else "bf16"
    return wanted if wanted in cache.bytes_per_token else next(iter(cache.bytes_per_token), None)


def bytes_per_token(model: ModelReport, tp_size: int) -> float | None:
    """Bytes of KV pool that a token takes on one rank, its share of windows included; None where it is not known."""
    cache, kind = model.kv_cache, cache_type(model)
    if cache is None or kind is None:
        return None
    size = cache.bytes_per_token[kind]
    window = model.attention.sliding_window if model.attention else None
    windows = cache.bytes_per_sequence.get(kind, 0) if window else 0
    if window and windows:
        v4 = model.attention.kind == "V4-compressed"
        if v4:
            layers = max(1, sum(model.attention.layers.values()))
            row = windows / window / layers
            size += v4_filling(model, row) + V4_WINDOW_RATIO * (paged(row, V4_PAGE) * layers + v4_state(model))
        else:
            size += DEFAULT_WINDOW_RATIO * windows / window
    return size if cache.replicated else size / sharing(model, tp_size)


def bytes_per_sequence(model: ModelReport, tp_size: int) -> int:
    """Bytes on one rank that a request takes whatever its length: states of linear layers. Windows are in the pool."""
    cache, kind = model.kv_cache, cache_type(model)
    if cache is None or kind is None or (model.attention and model.attention.sliding_window):
        return 0
    return int(cache.bytes_per_sequence.get(kind, 0) / sharing(model, tp_size))


def v4_state(model: ModelReport) -> float:
    """Bytes of the ratio-4 compressors' states for each token of the window pool (`_get_bytes_per_swa_token`)."""
    layers = model.attention.layers.get("compressed 4x", 0)
    row = 2 * 2 * ((model.head_dim or 0) + (model.attention.index_head_dim or 0)) * 4
    return V4_STATE_ROWS / V4_PAGE * row * layers


def v4_filling(model: ModelReport, row: float) -> float:
    """Bytes a token that fill the pages of compressed rows: 64 rows of ratio 4 a page, and 2 of ratio 128."""
    layers = model.attention.layers
    return sum(
        layers.get(f"compressed {ratio}x", 0) * (paged(row, V4_PAGE // ratio) - row) / ratio for ratio in (4, 128)
    )


def paged(row: float, rows: int) -> float:
    """Bytes a row in pages of so many rows."""
    return -(-row * rows // V4_ALIGNMENT) * V4_ALIGNMENT / rows


def fixed_bytes(model: ModelReport) -> int:
    """Bytes of pools that do not grow with tokens: V4's ratio-128 states, for each slot of a request, on every rank."""
    if model.attention is None or model.attention.kind != "V4-compressed":
        return 0
    return V4_SLOTS * V4_SLOT_ROWS * 2 * (model.head_dim or 0) * 4 * model.attention.layers.get("compressed 128x", 0)


def sharing(model: ModelReport, tp_size: int) -> int:
    """Over how many ranks the KV heads are spread."""
    return min(tp_size, model.kv_heads or tp_size)
