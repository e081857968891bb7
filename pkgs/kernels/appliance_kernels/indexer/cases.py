"""Random inputs of the indexer, from a seed: for tests and benchmarks alike."""

import torch

from . import layout


def random_cache(pages: int, generator: torch.Generator, page_stride: int = layout.PAGE_BYTES) -> torch.Tensor:
    """Standard normal keys, quantized. Bytes between pages are random too."""
    device = generator.device
    cache = layout.empty_cache(pages, device, page_stride)
    cache.as_strided((pages * page_stride,), (1,)).random_(0, 256, generator=generator)
    for first in range(0, pages, chunk := 1024):
        part = cache[first : first + chunk]
        values = torch.randn(part.shape[0] * layout.PAGE_SIZE, layout.HEAD_DIM, device=device, generator=generator)
        layout.write(part, *layout.quantize(values))
    return cache


def random_case(lengths: list[int], cache: torch.Tensor, width: int, generator: torch.Generator) -> dict:
    """Arguments of `paged_mqa_logits`: a row a length, each with pages of its own choice from the cache.

    Weights have both signs, as the model's have.
    """
    device, rows = cache.device, len(lengths)
    table_width = max(1, -(-width // layout.PAGE_SIZE))
    q = torch.randn(rows, layout.HEADS, layout.HEAD_DIM, device=device, generator=generator) * 8
    table = torch.randint(0, cache.shape[0], (rows, table_width), device=device, generator=generator, dtype=torch.int32)
    return {
        "q": q.to(torch.float8_e4m3fn), "cache": cache,
        "weights": torch.randn(rows, layout.HEADS, device=device, generator=generator),
        "lengths": torch.tensor(lengths, dtype=torch.int32, device=device), "page_table": table, "width": width,
    }  # fmt: skip
