"""The indexer's logits for torch tensors: exact checks of the arguments, then one launch."""

from functools import cache as remember

import torch

from .. import library
from ..checks import require, require_dense_rows, require_tensor
from . import layout

KERNEL = "paged_mqa_logits"
ROWS_OF_A_LAUNCH = 2048
ALIGNMENT = 16  # bytes that one cp.async moves
MAX_PAGES = 2**31 - 1
MAX_WIDTH = 2**24  # the tiles of a launch are counted in 32 bits


def check_arguments(q, cache, weights, lengths, page_table, width, out) -> None:
    """Raises ValueError unless the kernel takes exactly these. Reads no memory: fake tensors do."""
    shape = (None, layout.HEADS, layout.HEAD_DIM)
    if isinstance(q, torch.Tensor) and q.ndim == 4:
        shape = (None, 1, *shape[1:])
    require_tensor(KERNEL, "q", q, (torch.float8_e4m3fn,), shape, None)
    rows = q.shape[0]
    require(KERNEL, rows > 0, "q", "at least one row", rows)
    require_dense_rows(KERNEL, "q", q)
    require(KERNEL, q.stride(0) % ALIGNMENT == 0, "q", f"a row stride that is a multiple of {ALIGNMENT}", q.stride(0))
    kinds = (torch.uint8, torch.float8_e4m3fn)
    require_tensor(KERNEL, "cache", cache, kinds, (None, layout.PAGE_SIZE, 1, layout.TOKEN_BYTES), q.device)
    require(KERNEL, 0 < cache.shape[0] <= MAX_PAGES, "cache", "1 to 2^31 - 1 pages", cache.shape[0])
    require_dense_rows(KERNEL, "cache", cache)
    stride = cache.stride(0)
    fits = stride >= layout.PAGE_BYTES and stride % ALIGNMENT == 0
    require(KERNEL, fits, "cache",
            f"a page stride of at least {layout.PAGE_BYTES} bytes and a multiple of {ALIGNMENT}", stride)  # fmt: skip
    require_tensor(KERNEL, "weights", weights, (torch.float32,), (rows, layout.HEADS), q.device)
    require_dense_rows(KERNEL, "weights", weights)
    lengths_shape = (rows, 1) if isinstance(lengths, torch.Tensor) and lengths.ndim == 2 else (rows,)
    require_tensor(KERNEL, "lengths", lengths, (torch.int32,), lengths_shape, q.device)
    require(KERNEL, lengths.is_contiguous(), "lengths", "a contiguous tensor", f"strides {lengths.stride()}")
    require_tensor(KERNEL, "page_table", page_table, (torch.int32,), (rows, None), q.device)
    require_dense_rows(KERNEL, "page_table", page_table)
    whole = isinstance(width, int) and not isinstance(width, bool)
    require(KERNEL, whole and 0 < width <= MAX_WIDTH, "width", f"1 to {MAX_WIDTH} columns", width)
    columns = page_table.shape[1]
    require(KERNEL, 0 < columns <= MAX_WIDTH, "page_table", f"1 to {MAX_WIDTH} columns", columns)
    if out is not None:
        require_tensor(KERNEL, "out", out, (torch.float32,), (rows, width), q.device)
        require_dense_rows(KERNEL, "out", out)


@remember
def _blocks(device: torch.device) -> int:
    with torch.cuda.device(device):
        return library.prepare_indexer_logits()


def prepare(device) -> None:
    """Loads the kernel on a CUDA device. Call it before CUDA graph capture."""
    device = torch.device(device)
    _blocks(torch.device("cuda", torch.cuda.current_device()) if device.index is None else device)


def paged_mqa_logits(q, cache, weights, lengths, page_table, width: int, out=None) -> torch.Tensor:
    """Logits of each row's query against the tokens of its pages: scale[t] * sum_h weight[h] * relu(q[h] . k[t]).

    q `[B, 64, 128]` or `[B, 1, 64, 128]` float8_e4m3fn, its scale folded into the weights.
    cache `[pages, 64, 1, 132]` uint8 or float8_e4m3fn in the layout of `layout.py`; page strides may hold padding.
    weights `[B, 64]` float32.
    lengths `[B]` or `[B, 1]` int32: tokens of a row; at most `width` and 64 times the columns of the page table count.
    page_table `[B, columns]` int32: the page of a row's tokens 0..63, 64..127, ... A page outside the cache gives -inf.
    width: columns of the result. out `[B, width]` float32 is allocated unless given; its rows may be strided.

    Columns at or beyond a row's length are not written (DeepGEMM's clean_logits=False). Formulas in `reference.py`.
    No memory but the result is used. The launch depends on shapes only: captured in a CUDA graph, it serves any later
    content. ValueError for anything else; launches on the current stream.
    """
    check_arguments(q, cache, weights, lengths, page_table, width, out)
    for name, t in (("q", q), ("cache", cache)):
        aligned = t.data_ptr() % ALIGNMENT == 0
        require(KERNEL, aligned, name, f"an address that is a multiple of {ALIGNMENT}", f"{t.data_ptr():#x}")
    out = torch.empty(q.shape[0], width, dtype=torch.float32, device=q.device) if out is None else out
    blocks = _blocks(q.device)
    with torch.cuda.device(q.device):
        stream = torch.cuda.current_stream(q.device).cuda_stream
        for first in range(0, q.shape[0], ROWS_OF_A_LAUNCH):
            part = slice(first, first + ROWS_OF_A_LAUNCH)
            rows = q[part].shape[0]
            params = library.IndexerLogitsParams(
                q=q[part].data_ptr(), cache=cache.data_ptr(), weights=weights[part].data_ptr(),
                lengths=lengths[part].data_ptr(), page_table=page_table[part].data_ptr(), logits=out[part].data_ptr(),
                q_stride=q.stride(0), page_stride=cache.stride(0), weights_stride=weights.stride(0),
                page_table_stride=page_table.stride(0), logits_stride=out.stride(0),
                rows=rows, pages=cache.shape[0], table_width=page_table.shape[1], width=width,
            )  # fmt: skip
            library.indexer_logits(params, blocks, stream)
    return out
