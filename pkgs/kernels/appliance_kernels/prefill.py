"""Sparse MLA prefill for torch tensors: exact checks of the arguments, then one launch."""

from functools import cache

import torch

from . import arguments, library

KERNEL = "sparse_mla_prefill"


def check_arguments(
    q, k_cache, indices, topk_length, attn_sink, softmax_scale,
    extra_k_cache, extra_indices, extra_topk_length, out, lse,
) -> None:  # fmt: skip
    """Raises ValueError unless the kernel takes exactly these tensors. Reads no memory: fake tensors do."""
    arguments.check(
        KERNEL, q, k_cache, indices, topk_length, attn_sink, softmax_scale,
        extra_k_cache, extra_indices, extra_topk_length, out, lse,
    )  # fmt: skip


@cache
def _device(device: torch.device, heads: int) -> tuple[int, int]:
    with torch.cuda.device(device):
        return library.prepare_prefill(heads)


def sparse_mla_prefill(
    q, k_cache, indices, topk_length=None, attn_sink=None, softmax_scale=None,
    extra_k_cache=None, extra_indices=None, extra_topk_length=None, out=None, lse=None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """`sparse_mla_decode` for many query tokens: the same arguments, layouts and results (`decode.py`), B up to 65535.

    Each query token is one block's (two of 32 heads for 64), so the GPU is full from a few hundred on; fewer are
    better served by decode, which splits them. No memory but the result is used, and no workspace.
    """
    check_arguments(
        q, k_cache, indices, topk_length, attn_sink, softmax_scale,
        extra_k_cache, extra_indices, extra_topk_length, out, lse,
    )  # fmt: skip
    rows, _, heads, dim = q.shape
    arguments.require_aligned(KERNEL, "q", q)
    out = q.new_empty(rows, 1, heads, dim) if out is None else out
    lse = q.new_empty(rows, heads, 1, dtype=torch.float32) if lse is None else lse
    _device(q.device, heads)
    params = library.PrefillParams(
        q=q.data_ptr(), q_batch_stride=q.stride(0), q_head_stride=q.stride(2), out=out.data_ptr(), lse=lse.data_ptr(),
        sink=None if attn_sink is None else attn_sink.data_ptr(),
        softmax_scale=dim**-0.5 if softmax_scale is None else softmax_scale, rows=rows, heads=heads,
    )  # fmt: skip
    arguments.fill_sources(
        KERNEL, params.source, k_cache, indices, topk_length, extra_k_cache, extra_indices, extra_topk_length
    )
    with torch.cuda.device(q.device):
        library.prefill(params, torch.cuda.current_stream(q.device).cuda_stream)
    return out, lse
