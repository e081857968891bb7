"""The indexer's logits in float64 PyTorch: what the kernel is compared with."""

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
