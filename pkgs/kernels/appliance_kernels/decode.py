"""Sparse MLA decode for torch tensors: exact checks of the arguments, then one launch."""

from functools import cache
from typing import NamedTuple

import torch

from . import arguments, layout, library
from .arguments import HEADS
from .plan import MAX_SPLITS, Device, plan, tiles

KERNEL = "sparse_mla_decode"


def check_arguments(
    q, k_cache, indices, topk_length, attn_sink, softmax_scale,
    extra_k_cache, extra_indices, extra_topk_length, out, lse,
) -> None:  # fmt: skip
    """Raises ValueError unless the kernel takes exactly these tensors. Reads no memory: fake tensors do."""
    arguments.check(
        KERNEL, q, k_cache, indices, topk_length, attn_sink, softmax_scale,
        extra_k_cache, extra_indices, extra_topk_length, out, lse,
    )  # fmt: skip


class Workspace(NamedTuple):
    """Scratch of launches that split a row over several clusters. One for each stream that runs such launches."""

    partial: torch.Tensor  # float32
    partial_ml: torch.Tensor  # float32
    counters: torch.Tensor  # int32, zero between launches

    @classmethod
    def allocate(cls, device: torch.device) -> "Workspace":
        """Large enough for every plan: a plan splits only while all blocks of the grid run at once."""
        clusters = max(_device(device, heads).blocks for heads in HEADS)
        rows = max(clusters * HEADS[-1], MAX_SPLITS)
        return cls(
            torch.empty(rows * layout.HEAD_DIM, device=device),
            torch.empty(rows * 2, device=device),
            torch.zeros(clusters, dtype=torch.int32, device=device),
        )


@cache
def _device(device: torch.device, heads: int) -> Device:
    with torch.cuda.device(device):
        return Device(*library.prepare_decode(heads))


@cache
def _default_workspace(device: torch.device) -> Workspace:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(f"sparse_mla_decode: call appliance_kernels.prepare({str(device)!r}) before a graph capture")
    return Workspace.allocate(device)


def prepare(device) -> None:
    """Loads the kernels and allocates scratch on a CUDA device. Call it before CUDA graph capture."""
    device = torch.device(device)
    if device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    _default_workspace(device)


def sparse_mla_decode(
    q, k_cache, indices, topk_length=None, attn_sink=None, softmax_scale=None,
    extra_k_cache=None, extra_indices=None, extra_topk_length=None, out=None, lse=None, workspace=None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Attention of one query token a row to listed tokens of one or two paged caches, keys = values.

    q `[B, 1, H, 512]` bfloat16, H in 8, 16, 32, 64.
    k_cache, extra_k_cache `[pages, page_size, 1, 584]` uint8 or float8_e4m3fn in the layout of `layout.py`; page sizes
        are powers of two, page strides in bytes are multiples of 16 and may hold padding.
    indices, extra_indices `[B, width]` or `[B, 1, width]` int32, flat token numbers (page * page_size + offset). A
        number outside the cache, such as -1, means no token. Twice the same number counts twice.
    topk_length, extra_topk_length `[B]` int32: only so many leading indices of a row count; None: all.
    attn_sink `[H]` float32, natural logarithm: adds exp(sink) to the softmax denominator; -inf adds nothing, +inf makes
        the output zero.
    softmax_scale: factor of q . k, 512 ** -0.5 if None.
    out `[B, 1, H, 512]` bfloat16 and lse `[B, H, 1]` float32 are allocated unless given.

    Returns (out, lse); formulas in `reference.py`. A row without a valid token gives zeros and lse -inf.
    The launch depends on shapes only: captured in a CUDA graph, it serves any later content of all tensors.
    ValueError for anything else; launches on the current stream. Launches that may run at the same time on several
    streams need a `Workspace` each.
    """
    check_arguments(
        q, k_cache, indices, topk_length, attn_sink, softmax_scale,
        extra_k_cache, extra_indices, extra_topk_length, out, lse,
    )  # fmt: skip
    batch, _, heads, dim = q.shape
    arguments.require_aligned(KERNEL, "q", q)
    out = q.new_empty(batch, 1, heads, dim) if out is None else out
    lse = q.new_empty(batch, heads, 1, dtype=torch.float32) if lse is None else lse
    workspace = _default_workspace(q.device) if workspace is None else workspace
    device = _device(q.device, heads)
    extra_width = 0 if extra_k_cache is None else extra_indices.shape[-1]
    chosen = plan(
        batch * heads // device.heads_per_block, tiles(indices.shape[-1], extra_width, device.tokens_per_tile), device
    )
    params = library.DecodeParams(
        q=q.data_ptr(), q_batch_stride=q.stride(0), q_head_stride=q.stride(2), out=out.data_ptr(), lse=lse.data_ptr(),
        sink=None if attn_sink is None else attn_sink.data_ptr(),
        partial=workspace.partial.data_ptr(), partial_ml=workspace.partial_ml.data_ptr(),
        counters=workspace.counters.data_ptr(),
        softmax_scale=dim**-0.5 if softmax_scale is None else softmax_scale,
        batch=batch, heads=heads, cluster=chosen.cluster, splits=chosen.splits,
    )  # fmt: skip
    arguments.fill_sources(
        KERNEL, params.source, k_cache, indices, topk_length, extra_k_cache, extra_indices, extra_topk_length
    )
    with torch.cuda.device(q.device):
        library.decode(params, torch.cuda.current_stream(q.device).cuda_stream)
    return out, lse
