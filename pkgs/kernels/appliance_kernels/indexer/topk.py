"""The indexer's top-k for torch tensors: exact checks of the arguments, then one launch; alone, or after the logits."""

from functools import cache as remember

import torch

from .. import library
from ..checks import require, require_dense_rows, require_tensor
from . import logits as logits_

KERNEL = "topk_transform"
MAX_TOPK = 2048
MAX_WIDTH = 2**24  # a column is 24 bits of a sorted key
MAX_BLOCKS = 2**31 - 1  # of a CUDA grid
MAX_PAGE_SIZE = 1 << 20
COLUMNS_OF_A_BLOCK = 8192
SCRATCH_LOGITS = 1 << 24
"""Logits that `paged_topk` keeps at once (64 MiB), but for a single row that is longer."""


def check_arguments(scores, lengths, page_table, tokens, page_size, positions) -> None:
    """Raises ValueError unless the kernel takes exactly these. Reads no memory: fake tensors do."""
    require_tensor(KERNEL, "scores", scores, (torch.float32,), (None, None), None)
    rows, width = scores.shape
    require(KERNEL, 0 < rows <= MAX_BLOCKS // 16, "scores", f"1 to {MAX_BLOCKS // 16} rows", rows)
    require(KERNEL, 0 < width <= MAX_WIDTH, "scores", f"1 to {MAX_WIDTH} columns", width)
    require_dense_rows(KERNEL, "scores", scores)
    lengths_shape = (rows, 1) if isinstance(lengths, torch.Tensor) and lengths.ndim == 2 else (rows,)
    require_tensor(KERNEL, "lengths", lengths, (torch.int32,), lengths_shape, scores.device)
    require(KERNEL, lengths.is_contiguous(), "lengths", "a contiguous tensor", f"strides {lengths.stride()}")
    require(KERNEL, tokens is not None or positions is not None, "tokens and positions", "at least one of them", "none")
    topk = None
    for name, t in (("tokens", tokens), ("positions", positions)):
        if t is not None:
            require_tensor(KERNEL, name, t, (torch.int32,), (rows, topk), scores.device)
            topk = t.shape[1]
            require(KERNEL, 0 < topk <= MAX_TOPK, name, f"1 to {MAX_TOPK} columns", topk)
            require_dense_rows(KERNEL, name, t)
    if tokens is not None:
        require_tensor(KERNEL, "page_table", page_table, (torch.int32,), (rows, None), scores.device)
        require(KERNEL, page_table.shape[1] > 0, "page_table", "at least one column", 0)
        require_dense_rows(KERNEL, "page_table", page_table)
        whole = isinstance(page_size, int) and not isinstance(page_size, bool)
        power = whole and 0 < page_size <= MAX_PAGE_SIZE and page_size & (page_size - 1) == 0
        require(KERNEL, power, "page_size", f"a power of two up to {MAX_PAGE_SIZE}", page_size)


@remember
def _limits(device: torch.device) -> tuple[int, int]:
    with torch.cuda.device(device):
        return library.prepare_indexer_topk()


def blocks_of_row(rows: int, width: int, at_once: int, largest: int) -> int:
    """A power of two: so many that each has enough columns, and that all rows' blocks run at once."""
    wanted = max(1, min(-(-width // COLUMNS_OF_A_BLOCK), at_once // rows, largest))
    return 1 << (wanted.bit_length() - 1)


def topk_transform(scores, lengths, page_table=None, tokens=None, page_size=None, positions=None) -> None:
    """The best columns of each row, and the tokens they stand for, written to `tokens` and `positions` `[B, topk]`.

    scores `[B, width]` float32, rows may be strided. lengths `[B]` or `[B, 1]` int32: leading columns that count; more
    than `width` count as that.
    positions: columns, best first, of equal scores the first column first; NaN stands above infinity. -1 follows where
    a row has fewer; a row of at most `topk` columns gives all of them in order.
    tokens: page_table[row, column // page_size] * page_size + column % page_size, -1 for a page below zero.
    page_table `[B, columns]` int32. `tokens` or `positions` may be None.

    The same bits every time. No other memory is used. The launch depends on shapes only: captured in a CUDA graph, it
    serves any later content. ValueError for anything else; launches on the current stream.
    """
    check_arguments(scores, lengths, page_table, tokens, page_size, positions)
    rows, width = scores.shape
    at_once, largest = _limits(scores.device)
    params = library.IndexerTopkParams(
        scores=scores.data_ptr(), scores_stride=scores.stride(0), lengths=lengths.data_ptr(), width=width, rows=rows,
        topk=(positions if tokens is None else tokens).shape[1], cluster=blocks_of_row(rows, width, at_once, largest),
    )  # fmt: skip
    if tokens is not None:
        params.tokens, params.tokens_stride = tokens.data_ptr(), tokens.stride(0)
        params.page_table, params.page_table_stride = page_table.data_ptr(), page_table.stride(0)
        params.table_width, params.log2_page_size = page_table.shape[1], page_size.bit_length() - 1
    if positions is not None:
        params.positions, params.positions_stride = positions.data_ptr(), positions.stride(0)
    with torch.cuda.device(scores.device):
        library.indexer_topk(params, torch.cuda.current_stream(scores.device).cuda_stream)


def prepare(device) -> None:
    """Loads the kernels of logits and top-k on a CUDA device. Call it before CUDA graph capture."""
    logits_.prepare(device)
    device = torch.device(device)
    _limits(torch.device("cuda", torch.cuda.current_device()) if device.index is None else device)


def paged_topk(q, cache, weights, lengths, page_table, width: int, tokens, positions=None) -> None:
    """Logits of `paged_mqa_logits` and their `topk_transform`, written to `tokens` `[B, topk]` int32.

    Memory besides the result: the logits of as many rows as give 2^24 (64 MiB), or of one row.
    """
    logits_.check_arguments(q, cache, weights, lengths, page_table, width, None)
    rows = q.shape[0]
    at_once = max(1, min(rows, SCRATCH_LOGITS // width))
    scratch = torch.empty(at_once, width, dtype=torch.float32, device=q.device)
    page_size = cache.shape[1]
    check_arguments(scratch[:1].expand(rows, width), lengths, page_table, tokens, page_size, positions)
    for first in range(0, rows, at_once):
        part = slice(first, first + at_once)
        scores = scratch[: q[part].shape[0]]
        logits_.paged_mqa_logits(q[part], cache, weights[part], lengths[part], page_table[part], width, out=scores)
        within = lengths[part]
        topk_transform(scores, within, page_table[part], tokens[part], page_size,
                       None if positions is None else positions[part])  # fmt: skip
