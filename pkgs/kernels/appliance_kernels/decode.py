"""Sparse MLA decode for torch tensors: exact checks of the arguments, then one launch."""

from functools import cache
from typing import NamedTuple

import torch

from . import layout, library
from .plan import MAX_SPLITS, Device, plan, tiles

HEADS = (8, 16, 32, 64)
MAX_BATCH = 65535  # the second dimension of a CUDA grid
MAX_PAGE_SIZE = 1024
ALIGNMENT = 16  # bytes that one cp.async moves
MAX_CACHE_BYTES = 2**32 * ALIGNMENT  # the kernel counts in units of that


def _require(holds: bool, name: str, expected: str, got) -> None:
    if not holds:
        raise ValueError(f"sparse_mla_decode: {name}: expected {expected}, got {got}")


def _check_tensor(name: str, t, dtypes: tuple, shape: tuple, device) -> None:
    """None in `shape` stands for any size."""
    _require(isinstance(t, torch.Tensor), name, "a tensor", type(t).__name__)
    _require(t.dtype in dtypes, name, f"dtype {' or '.join(map(str, dtypes))}", t.dtype)
    fits = t.ndim == len(shape) and all(e is None or e == n for e, n in zip(shape, t.shape, strict=True))
    wanted = "[" + ", ".join("any" if e is None else str(e) for e in shape) + "]"
    _require(fits, name, f"shape {wanted}", list(t.shape))
    _require(t.device == device, name, f"device {device} (that of q)", t.device)


def _check_source(prefix: str, cache_, indices, lengths, batch: int, device) -> None:
    name = f"{prefix}k_cache"
    _check_tensor(name, cache_, (torch.uint8, torch.float8_e4m3fn), (None, None, 1, layout.TOKEN_BYTES), device)
    pages, size = cache_.shape[:2]
    _require(pages > 0, name, "at least one page", f"shape {list(cache_.shape)}")
    power_of_two = 0 < size <= MAX_PAGE_SIZE and size & (size - 1) == 0
    _require(power_of_two, name, f"a page size that is a power of two up to {MAX_PAGE_SIZE} (dimension 1)", size)
    stride = cache_.stride(0)
    needed = size * layout.TOKEN_BYTES
    _require(
        stride >= needed and stride % ALIGNMENT == 0,
        name, f"a page stride of at least {needed} bytes and a multiple of {ALIGNMENT}", stride,
    )  # fmt: skip
    _require(cache_.stride(3) == 1, name, "a last dimension of stride 1", f"strides {cache_.stride()}")
    _require(pages * size < 2**31, name, "fewer than 2^31 tokens", pages * size)
    _require(pages * stride < MAX_CACHE_BYTES, name, f"less than {MAX_CACHE_BYTES} bytes", pages * stride)
    name = f"{prefix}indices"
    _require(isinstance(indices, torch.Tensor) and indices.ndim in (2, 3), name, "a tensor [B, width] or [B, 1, width]",
             list(indices.shape) if isinstance(indices, torch.Tensor) else type(indices).__name__)  # fmt: skip
    shape = (batch, None) if indices.ndim == 2 else (batch, 1, None)
    _check_tensor(name, indices, (torch.int32,), shape, device)
    _require(indices.shape[-1] > 0, name, "a width of at least 1", list(indices.shape))
    _require(indices.stride(-1) == 1, name, "a last dimension of stride 1", f"strides {indices.stride()}")
    if lengths is not None:
        name = f"{prefix}topk_length"
        _check_tensor(name, lengths, (torch.int32,), (batch,), device)
        _require(lengths.is_contiguous(), name, "a contiguous tensor", f"strides {lengths.stride()}")


def check_arguments(
    q, k_cache, indices, topk_length, attn_sink, softmax_scale,
    extra_k_cache, extra_indices, extra_topk_length, out, lse,
) -> None:  # fmt: skip
    """Raises ValueError unless the kernel takes exactly these tensors. Reads no memory: fake tensors do."""
    _require(isinstance(q, torch.Tensor), "q", "a tensor", type(q).__name__)
    _require(q.device.type == "cuda", "q", "a CUDA device", q.device)
    _check_tensor("q", q, (torch.bfloat16,), (None, 1, None, layout.HEAD_DIM), q.device)
    batch, heads = q.shape[0], q.shape[2]
    _require(heads in HEADS, "q", f"a head count (dimension 2) of {HEADS}", heads)
    _require(0 < batch <= MAX_BATCH, "q", f"a batch (dimension 0) of 1 to {MAX_BATCH}", batch)
    rows = q.stride(3) == 1 and q.stride(0) % 8 == 0 and q.stride(2) % 8 == 0
    _require(rows, "q", "a last dimension of stride 1, other strides multiples of 8", f"strides {q.stride()}")
    _check_source("", k_cache, indices, topk_length, batch, q.device)
    if extra_k_cache is not None:
        _check_source("extra_", extra_k_cache, extra_indices, extra_topk_length, batch, q.device)
    else:
        none = extra_indices is None and extra_topk_length is None
        _require(none, "extra_indices and extra_topk_length", "None where extra_k_cache is None", "a tensor")
    if attn_sink is not None:
        _check_tensor("attn_sink", attn_sink, (torch.float32,), (heads,), q.device)
        _require(attn_sink.is_contiguous(), "attn_sink", "a contiguous tensor", f"strides {attn_sink.stride()}")
    number = isinstance(softmax_scale, (int, float)) and not isinstance(softmax_scale, bool)
    _require(softmax_scale is None or number, "softmax_scale", "a number", type(softmax_scale).__name__)
    for name, t, dtype, shape in (
        ("out", out, torch.bfloat16, (batch, 1, heads, layout.HEAD_DIM)),
        ("lse", lse, torch.float32, (batch, heads, 1)),
    ):
        if t is not None:
            _check_tensor(name, t, (dtype,), shape, q.device)
            _require(t.is_contiguous(), name, "a contiguous tensor", f"strides {t.stride()}")


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


def _source(cache_, indices, lengths) -> library.Source:
    pages, size = cache_.shape[:2]
    if (pointer := cache_.data_ptr()) % ALIGNMENT:
        raise ValueError(
            f"sparse_mla_decode: cache: expected an address that is a multiple of {ALIGNMENT}, got {pointer:#x}"
        )
    return library.Source(
        cache=pointer, page_stride16=cache_.stride(0) // ALIGNMENT,
        indices=indices.data_ptr(), indices_stride=indices.stride(0),
        lengths=None if lengths is None else lengths.data_ptr(),
        width=indices.shape[-1], capacity=pages * size, log2_page_size=size.bit_length() - 1,
    )  # fmt: skip


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
    if q.data_ptr() % ALIGNMENT:
        raise ValueError(
            f"sparse_mla_decode: q: expected an address that is a multiple of {ALIGNMENT}, got {q.data_ptr():#x}"
        )
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
    params.source[0] = _source(k_cache, indices, topk_length)
    params.source[1] = library.Source(cache=k_cache.data_ptr())  # never null, also where nothing is read from it
    if extra_k_cache is not None:
        params.source[1] = _source(extra_k_cache, extra_indices, extra_topk_length)
    with torch.cuda.device(q.device):
        library.decode(params, torch.cuda.current_stream(q.device).cuda_stream)
    return out, lse
