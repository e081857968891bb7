"""The indexer's key cache: how a token's 128 values lie in a page of bytes.

A page of 64 tokens holds first the values of all tokens (128 fp8 e4m3 each), then the scales of all tokens (one fp32
each): 8,448 bytes (SGLang 0.5.23, srt/layers/attention/dsv4/indexer.py; DeepGEMM, fp8_paged_mqa_logits).
"""

import torch

HEADS = 64
HEAD_DIM = 128
PAGE_SIZE = 64
TOKEN_BYTES = HEAD_DIM + 4
PAGE_BYTES = PAGE_SIZE * TOKEN_BYTES
E4M3_MAX = 448.0


def empty_cache(pages: int, device="cpu", page_stride: int = PAGE_BYTES) -> torch.Tensor:
    """A cache `[pages, 64, 1, 132]` of uint8, uninitialized; `page_stride` in bytes."""
    raw = torch.empty(pages * page_stride, dtype=torch.uint8, device=device)
    return raw.as_strided((pages, PAGE_SIZE, 1, TOKEN_BYTES), (page_stride, TOKEN_BYTES, TOKEN_BYTES, 1))


def regions(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Views of a cache: values `[pages, 64, 128]` e4m3 and the scales' bytes `[pages, 64, 4]`."""
    raw = cache.view(torch.uint8)
    pages, stride, start = raw.shape[0], raw.stride(0), raw.storage_offset()
    values = raw.as_strided((pages, PAGE_SIZE, HEAD_DIM), (stride, HEAD_DIM, 1), start)
    scales = raw.as_strided((pages, PAGE_SIZE, 4), (stride, 4, 1), start + PAGE_SIZE * HEAD_DIM)
    return values.view(torch.float8_e4m3fn), scales


def write(cache: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> None:
    """Fills a cache for flat tokens 0, 1, ... with values `[tokens, 128]` e4m3 and scales `[tokens]` float32."""
    value_region, scale_region = regions(cache)
    value_region.view(torch.uint8)[:] = values.view(torch.uint8).view_as(value_region)
    scale_region[:] = scales.contiguous().view(torch.uint8).view_as(scale_region)


def quantize(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Values `[tokens, 128]` as e4m3 with the scale `[tokens]` under which a token's largest magnitude is 448."""
    scales = values.float().abs().amax(-1).clamp_min(1e-4) / E4M3_MAX
    return (values.float() / scales.unsqueeze(-1)).to(torch.float8_e4m3fn), scales


def read(cache: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Values `[..., 128]` e4m3 and scales `[...]` float32 of flat `tokens [...]`."""
    values, scales = regions(cache)
    page, offset = tokens.long() // PAGE_SIZE, tokens.long() % PAGE_SIZE
    picked = values.view(torch.uint8)[page, offset].view(torch.float8_e4m3fn)
    return picked, scales[page, offset].contiguous().view(torch.float32).squeeze(-1)
