"""Random inputs of sparse MLA decode, from a seed: for tests and benchmarks alike."""

import torch

from . import layout


def random_cache(
    pages: int, page_size: int, generator: torch.Generator, page_stride: int | None = None
) -> torch.Tensor:
    """Standard normal values, quantized. Bytes between tokens' data and the page stride are random too."""
    device = generator.device
    cache = layout.empty_cache(pages, page_size, device, page_stride)
    raw = cache.as_strided((pages * cache.stride(0),), (1,))
    raw.random_(0, 256, generator=generator)
    for first in range(0, pages, chunk := max(1, 65536 // page_size)):
        part = cache[first : first + chunk]
        values = torch.randn(part.shape[0] * page_size, layout.HEAD_DIM, device=device, generator=generator)
        layout.write(part, *layout.quantize(values))
    return cache


def random_indices(batch: int, width: int, cache: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    tokens = cache.shape[0] * cache.shape[1]
    return torch.randint(0, tokens, (batch, 1, width), device=generator.device, generator=generator, dtype=torch.int32)


def random_case(
    batch: int, heads: int, k_cache: torch.Tensor, width: int, extra_k_cache: torch.Tensor | None = None,
    extra_width: int = 0, shared: bool = False, generator: torch.Generator | None = None,
) -> dict:  # fmt: skip
    """Arguments of `sparse_mla_decode`: full lengths, a sink, random tokens; `shared`: the same tokens in every row."""
    device = k_cache.device
    generator = generator or torch.Generator(device).manual_seed(0)

    def pick(cache, columns):
        indices = random_indices(1 if shared else batch, columns, cache, generator)
        return indices.expand(batch, 1, columns).contiguous()

    def full(columns):
        return torch.full((batch,), columns, device=device, dtype=torch.int32)

    case = {
        "q": torch.randn(batch, 1, heads, layout.HEAD_DIM, device=device, generator=generator).bfloat16(),
        "k_cache": k_cache, "indices": pick(k_cache, width), "topk_length": full(width),
        "attn_sink": torch.randn(heads, device=device, generator=generator),
    }  # fmt: skip
    if extra_width:
        case |= {
            "extra_k_cache": extra_k_cache, "extra_indices": pick(extra_k_cache, extra_width),
            "extra_topk_length": full(extra_width),
        }  # fmt: skip
    return case
