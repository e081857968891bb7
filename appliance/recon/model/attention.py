"""Attention kind and the size of the KV cache, from the configuration.

Sizes as SGLang 0.5.23 allocates them (srt/model_executor/pool_configurator.py `_compute_cell_size`,
`_compressed_bytes_per_full_token`; srt/mem_cache/kv_cache_configurator.py `calculate_mla_kv_cache_dim`;
srt/mem_cache/deepseek_v4_memory_pool.py), for one GPU that holds every head:

MHA, GQA, MQA  kv_heads * (head_dim + v_head_dim) * layers * bytes of the type
MLA            (kv_lora_rank + qk_rope_head_dim) * layers * bytes of the type (arXiv 2405.04434, section 2.1.2)
DSA            MLA's; in fp8 a row is kv_lora_rank + 4 for each 128 of it + 2 * qk_rope_head_dim bytes. The indexer
               adds a key of index_head_dim fp8 values + 4 bytes for each 128, whatever the type of the cache
V4-compressed  a row is 448 fp8 + 64 bf16 + 8 bytes of scales = 584 bytes (head_dim 512, rope 64). A layer of ratio r
               keeps one row for r tokens; ratio 4 adds an indexer key as in DSA, ratios 1 and 2 one of 4-bit values
               (index_head_dim / 2 + index_head_dim / 32 bytes). Every layer keeps the last `sliding_window` rows.
               V4.1's layers share rows with the source layers of kv_source_layer_ids: only these are counted.
               The bf16 variant, 2 * head_dim bytes a row, exists on other vendors' GPUs alone.
sliding        as GQA, but for the window's tokens only: a size a sequence, not a token
linear, mamba  a state a sequence: Gated DeltaNet and KDA value_heads * key_dim * value_dim, Mamba-2
               heads * head_dim * state, in float32, and the last inputs of the convolution, in bf16
"""

from appliance.documents.model import Attention, KvCache
from appliance.recon.model.configuration import Shape, number

TYPES = {"bf16": 2, "fp8": 1}
INDEX_SCALE_EVERY = 128
V4_SCALE_EVERY = 64


def attention_of(shape: Shape) -> Attention | None:
    """The attention of the model, or None where the configuration does not tell."""
    if not shape.layers or not shape.heads or not shape.kv_heads:
        return None
    layers = shape.layer_counts()
    ratios = compress_ratios(shape)
    if ratios:
        kind = "V4-compressed"
        layers = {}
        for ratio in ratios:
            name = f"compressed {ratio}x" if ratio > 1 else "uncompressed" if ratio else "sliding"
            layers[name] = layers.get(name, 0) + 1
    elif shape.get("kv_lora_rank"):
        kind = "DSA" if shape.get("index_topk") else "MLA"
    else:
        kind = "MQA" if shape.kv_heads == 1 else "GQA" if shape.kv_heads < shape.heads else "MHA"
    windowed = "sliding" in layers or kind == "V4-compressed"
    return Attention(
        kind=kind,
        layers=layers,
        sliding_window=shape.get("sliding_window") if windowed else None,
        latent_dim=shape.get("kv_lora_rank"),
        rope_dim=shape.get("qk_rope_head_dim"),
        index_topk=shape.get("index_topk"),
        index_head_dim=shape.get("index_head_dim"),
    )


def kv_cache_of(shape: Shape, declared: str | None) -> KvCache | None:
    """Bytes of KV cache a token and a sequence (module docstring), or None where the configuration does not tell."""
    attention = attention_of(shape)
    if attention is None:
        return None
    try:
        if attention.kind == "V4-compressed":
            sizes = v4_bytes(shape)
        elif attention.kind in ("MLA", "DSA"):
            sizes = latent_bytes(shape, attention)
        else:
            sizes = grouped_bytes(shape)
    except TypeError:  # a size that the formula needs is not in the configuration
        return None
    per_token, per_sequence, formula = sizes
    state = state_bytes(shape)
    if state:
        per_sequence = {kind: per_sequence.get(kind, 0) + state for kind in per_token}
    return KvCache(
        declared_dtype=declared,
        bytes_per_token=per_token,
        bytes_per_sequence={kind: size for kind, size in per_sequence.items() if size},
        formula=formula,
        replicated=attention.kind in ("MLA", "DSA", "V4-compressed"),
    )


Sizes = tuple[dict[str, float], dict[str, int], str]


def grouped_bytes(shape: Shape) -> Sizes:
    """Bytes a token, bytes a sequence, formula for MHA, GQA and MQA, with layers that have a window apart."""
    full = shape.layer_counts().get("full", 0)
    windowed = shape.layer_counts().get("sliding", 0)
    row = shape.kv_heads * (shape.head_dim + shape.v_head_dim)
    own = [shape.get(f"swa_{key}") for key in ("num_key_value_heads", "head_dim", "v_head_dim")]
    heads, keys, values = (a or b for a, b in zip(own, (shape.kv_heads, shape.head_dim, shape.v_head_dim), strict=True))
    window = (shape.get("sliding_window") or 0) * heads * (keys + values) * windowed
    formula = f"{shape.kv_heads} kv heads * ({shape.head_dim} + {shape.v_head_dim}) * {full} layers * bytes of the type"
    if windowed:
        formula += f"; {windowed} layers keep {shape.get('sliding_window')} tokens only"
    return (
        {kind: float(row * full * size) for kind, size in TYPES.items()},
        {kind: window * size for kind, size in TYPES.items()},
        formula,
    )


def latent_bytes(shape: Shape, attention: Attention) -> Sizes:
    """Bytes a token, bytes a sequence, formula for MLA and DSA."""
    rank, rope = shape.get("kv_lora_rank"), shape.get("qk_rope_head_dim")
    layers = shape.layer_counts().get("full", 0)
    per_token = {kind: float((rank + rope) * size * layers) for kind, size in TYPES.items()}
    formula = f"({rank} + {rope}) * {layers} layers * bytes of the type"
    if attention.kind == "DSA":
        key = index_key_bytes(shape.get("index_head_dim"))
        row = rank + rank // INDEX_SCALE_EVERY * 4 + 2 * rope
        per_token = {"bf16": per_token["bf16"] + key * layers, "fp8": float((row + key) * layers)}
        formula = f"(2 * ({rank} + {rope}), in fp8 {row}, + {key} of the indexer) * {layers} layers"
    return per_token, {}, formula


def v4_bytes(shape: Shape) -> Sizes:
    """Bytes a token, bytes a sequence, formula for V4's compressed attention."""
    head_dim, rope, index = shape.head_dim, shape.get("qk_rope_head_dim"), shape.get("index_head_dim")
    row = (head_dim - rope) + 2 * rope + (head_dim - rope) // V4_SCALE_EVERY + 1
    sources = shape.text.get("kv_source_layer_ids")
    ratios = compress_ratios(shape)
    kept = [ratio for layer, ratio in enumerate(ratios) if not isinstance(sources, list) or layer in sources]
    keys = {4: index_key_bytes(index), 2: index // 2 + index // 32, 1: index // 2 + index // 32}
    per_token = sum((row + keys.get(ratio, 0)) / ratio for ratio in kept if ratio)
    window = (shape.get("sliding_window") or 0) * row * len(ratios)
    counts = {ratio: kept.count(ratio) for ratio in sorted(set(kept)) if ratio}
    formula = " + ".join(
        f"{count} layers * ({row} + {keys.get(ratio, 0)}) / {ratio}" for ratio, count in counts.items()
    )
    return {"fp8": per_token}, {"fp8": window}, f"{formula}; {len(ratios)} layers keep a window"


def index_key_bytes(head_dim: int) -> int:
    """Bytes of one key of a sparse indexer: fp8 values and a float32 scale for each 128."""
    return head_dim + head_dim // INDEX_SCALE_EVERY * 4


def compress_ratios(shape: Shape) -> list[int]:
    """V4's compression ratio of each layer of the main model; empty for other models."""
    ratios = shape.text.get("compress_ratios")
    if not isinstance(ratios, list) or not all(isinstance(ratio, int) and ratio >= 0 for ratio in ratios):
        return []
    return ratios[: shape.layers]


def state_bytes(shape: Shape) -> int:
    """Bytes of the states that linear layers keep for one sequence (module docstring)."""
    counts = shape.layer_counts()
    try:
        if counts.get("mamba"):
            heads, state = shape.get("mamba_num_heads"), shape.get("ssm_state_size")
            width = heads * shape.get("mamba_head_dim")
            inputs = (width + 2 * shape.get("n_groups") * state) * (shape.get("conv_kernel") - 1)
            return counts["mamba"] * (4 * width * state + 2 * inputs)
        if not counts.get("linear"):
            return 0
        kimi = shape.text.get("linear_attn_config")
        if isinstance(kimi, dict):
            heads, dim, kernel = (number(kimi, key) for key in ("num_heads", "head_dim", "short_conv_kernel_size"))
            return counts["linear"] * (4 * heads * dim * dim + 2 * 3 * heads * dim * (kernel - 1))
        keys, key_dim, values, value_dim, kernel = (
            shape.get(f"linear_{key}")
            for key in ("num_key_heads", "key_head_dim", "num_value_heads", "value_head_dim", "conv_kernel_dim")
        )
        inputs = (2 * keys * key_dim + values * value_dim) * (kernel - 1)
        return counts["linear"] * (4 * values * key_dim * value_dim + 2 * inputs)
    except TypeError:  # a size is not in the configuration
        return 0
