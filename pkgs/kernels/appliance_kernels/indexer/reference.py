"""The indexer's logits and top-k in float64 PyTorch: what the kernels are compared with."""

import torch

from . import layout

CHUNK = 16384  # tokens of a row at a time: 64 heads of float64 each


def paged_mqa_logits(q, cache, weights, lengths, page_table, width) -> torch.Tensor:
    """Same arguments as the kernel. Returns `[B, width]` float64, -inf at and beyond each row's length.

    logit = scale * sum over heads of weight * relu(q . k) (DeepSeek-V3.2's lightning indexer, the product with the
    key's scale taken out of the sum as the engine's kernels do). A page outside the cache gives -inf.
    """
    rows = q.shape[0]
    query = q.reshape(rows, layout.HEADS, layout.HEAD_DIM).double()
    logits = torch.full((rows, width), float("-inf"), dtype=torch.float64, device=q.device)
    for row, length in enumerate(lengths.reshape(-1).tolist()):
        length = max(0, min(length, width, page_table.shape[1] * layout.PAGE_SIZE))
        for first in range(0, length, CHUNK):
            position = torch.arange(first, min(first + CHUNK, length), device=q.device)
            page = page_table[row, position // layout.PAGE_SIZE]
            valid = (page >= 0) & (page < cache.shape[0])
            token = torch.where(valid, page, 0).long() * layout.PAGE_SIZE + position % layout.PAGE_SIZE
            keys, scales = layout.read(cache, token)
            scores = torch.relu(keys.double() @ query[row].T) @ weights[row].double() * scales.double()
            logits[row, position] = scores.masked_fill(~valid, float("-inf"))
    return logits


def topk_positions(scores, lengths, topk: int) -> torch.Tensor:
    """Columns of the best scores `[B, topk]` int32, best first, then -1; equal scores by column, NaN above all.

    A row of at most `topk` columns gives all of them in order.
    """
    rows, width = scores.shape
    positions = torch.full((rows, topk), -1, dtype=torch.int32, device=scores.device)
    for row, length in enumerate(lengths.reshape(-1).tolist()):
        length = max(0, min(length, width))
        if length <= topk:
            positions[row, :length] = torch.arange(length, device=scores.device)
        else:
            order = torch.sort(scores[row, :length].double(), descending=True, stable=True).indices
            positions[row] = order[:topk]
    return positions


def tokens_of(positions, page_table, page_size: int) -> torch.Tensor:
    """Flat tokens `[B, topk]` int32 of a row's positions; -1 for a position of -1 or beyond the page table, and for a
    page below zero."""
    index = positions.clamp_min(0).long() // page_size
    page = page_table.gather(1, index.clamp_max(page_table.shape[1] - 1))
    tokens = page * page_size + positions.clamp_min(0) % page_size
    return tokens.masked_fill((positions < 0) | (index >= page_table.shape[1]) | (page < 0), -1).int()
