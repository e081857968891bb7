"""What fits on a GPU: weights, the engine's reserve, and KV cache with what is left."""

from appliance.documents import ModelReport, RankMemory
from appliance.engines.sglang.cuda import memory as sglang

GIB = 1024**3
SHORTEST_CONTEXT = 2048
"""A worker that cannot hold one request of so many tokens is taken not to fit. A choice of this project."""
STEP = 1024
"""A context that is cut to what fits is cut to a multiple of this."""


def rank_memory(
    model: ModelReport, capacity: int, tp_size: int, role: str, context: int | None = None, share: float = 1.0
) -> RankMemory | None:
    """Memory of one of `tp_size` ranks with `capacity` bytes each; None where the model's sizes are not known.

    context: tokens that a request shall be able to have; None: the model's own context, or as much of it as fits.
    share: part of the GPU that the worker may fill, where two workers share one.
    """
    weights = weights_of_rank(model, tp_size)
    per_token = sglang.bytes_per_token(model, tp_size)
    if weights is None or per_token is None:
        return None
    latent = model.kv_cache.replicated
    reserve = sglang.reserve(capacity, tp_size, role, latent)
    usable = int(capacity * share)
    pool = usable - weights - reserve
    fixed = sglang.fixed_bytes(model)
    per_sequence = sglang.bytes_per_sequence(model, tp_size)
    tokens = max(0, int((pool - fixed - per_sequence) / per_token)) if per_token else 0
    most = model.context_length_scaled or model.context_length or tokens
    longest = min(tokens, most)
    planned = context or (longest if longest == most else longest // STEP * STEP)
    together = max(0, int((pool - fixed) / (planned * per_token + per_sequence))) if planned else 0
    return RankMemory(
        capacity=usable,
        weights=weights,
        reserve=reserve,
        kv_pool=pool,
        kv_bytes_per_token=round(per_token, 2),
        kv_fixed_bytes=fixed,
        kv_bytes_per_sequence=per_sequence,
        pool_tokens=tokens,
        longest_context=longest,
        context=planned,
        concurrency=together,
        rests_on=rests_on(model, tp_size, role),
    )


def weights_of_rank(model: ModelReport, tp_size: int) -> int | None:
    """Bytes of weights on one of `tp_size` ranks; where the report has no such size, those of the next smaller one."""
    known = {rank.tp: rank.bytes for rank in model.ranks if rank.ep == 1 and rank.tp <= tp_size}
    return known[max(known)] if known else None


def rests_on(model: ModelReport, tp_size: int, role: str) -> list[str]:
    """Where the sizes come from."""
    windowed = model.attention is not None and model.attention.sliding_window is not None
    return [
        f"weights: {model.sources.get('ranks', 'the model report')}; what an engine repacks is not in it",
        f"KV cache in {sglang.cache_type(model)}: {model.kv_cache.formula}"
        + (", all of it on every rank" if model.kv_cache.replicated else f", over {tp_size} ranks")
        + ("; windows at the engine's own share of tokens" if windowed else ""),
        f"reserve: SGLang 0.5.23's rule for {role} (srt/arg_groups/memory_hook.py)",
    ]


def fits(memory: RankMemory | None, wanted: int | None) -> bool:
    """Whether the weights and one request of `wanted` tokens (or of the shortest that is of use) fit."""
    if memory is None:
        return True  # not known: said in the reasons, and checked when it starts
    return memory.longest_context >= (wanted or min(SHORTEST_CONTEXT, memory.longest_context or SHORTEST_CONTEXT))


def lacking(memory: RankMemory, wanted: int | None) -> int:
    """Bytes that one rank lacks for one request of `wanted` tokens; 0 where it fits."""
    need = (
        (wanted or SHORTEST_CONTEXT) * memory.kv_bytes_per_token + memory.kv_bytes_per_sequence + memory.kv_fixed_bytes
    )
    return max(0, int(need - memory.kv_pool))


def in_words(memory: RankMemory) -> str:
    """One line for a person."""
    return (
        f"weights {memory.weights / GIB:.1f} + reserve {memory.reserve / GIB:.1f} of {memory.capacity / GIB:.1f} GiB "
        f"leave {memory.kv_pool / GIB:.1f} for KV cache"
    )
