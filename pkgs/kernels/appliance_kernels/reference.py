"""Sparse MLA decode in float64 PyTorch: what the kernel is compared with. Plain formulas, no tiling."""

import torch

from . import layout


def _gather(cache, indices, lengths):
    """Keys `[B, width, 512]` float64 (zero where invalid) and validity `[B, width]`."""
    indices = indices.reshape(indices.shape[0], -1)
    position = torch.arange(indices.shape[1], device=indices.device)
    valid = (indices >= 0) & (indices < cache.shape[0] * cache.shape[1])
    if lengths is not None:
        valid &= position < lengths.reshape(-1, 1)
    keys = layout.read(cache, torch.where(valid, indices, 0)).double()
    return keys.masked_fill(~valid.unsqueeze(-1), 0.0), valid


def sparse_mla_decode(
    q, k_cache, indices, topk_length=None, attn_sink=None, softmax_scale=None,
    extra_k_cache=None, extra_indices=None, extra_topk_length=None,
):  # fmt: skip
    """Same arguments as the kernel. Returns out `[B, 1, H, 512]` and lse `[B, H, 1]`, float64.

    out = sum_t softmax_t(scale * q . k_t) k_t, where the softmax denominator also holds exp(sink) (the attention sink
    of StreamingLLM, arXiv:2309.17453, as DeepSeek-V4 uses it); lse leaves the sink out, as FlashMLA's does.
    """
    keys, valid = _gather(k_cache, indices, topk_length)
    if extra_k_cache is not None:
        more, more_valid = _gather(extra_k_cache, extra_indices, extra_topk_length)
        keys, valid = torch.cat([keys, more], 1), torch.cat([valid, more_valid], 1)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    scores = torch.einsum("bhd,btd->bht", q[:, 0].double(), keys) * scale
    scores = scores.masked_fill(~valid.unsqueeze(1), float("-inf"))
    lse = torch.logsumexp(scores, -1)
    total = lse if attn_sink is None else torch.logaddexp(lse, attn_sink.double())
    weights = torch.exp(scores - total.unsqueeze(-1))
    weights = torch.where(lse.unsqueeze(-1) == float("-inf"), 0.0, weights)
    return torch.einsum("bht,btd->bhd", weights, keys).unsqueeze(1), lse.unsqueeze(-1)
