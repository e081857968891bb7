"""The 584-byte KV layout of DeepSeek-V4: how a token's 512 values lie in a page of bytes.

A page of `page_size` tokens holds first the data of all tokens (576 bytes each: 448 fp8 e4m3 values, 64 bf16 values),
then the scales of all tokens (8 bytes each: 7 UE8M0 exponents, one for 64 fp8 values, and a pad byte), then padding up
to a multiple of 576 bytes. UE8M0: the byte s means 2^(s - 127), 255 means NaN (OCP Microscaling Formats, version 1.0).
"""

import torch

HEAD_DIM = 512
FP8_VALUES = 448
GROUP = 64
GROUPS = FP8_VALUES // GROUP
DATA_BYTES = FP8_VALUES + 2 * (HEAD_DIM - FP8_VALUES)
SCALE_BYTES = 8
TOKEN_BYTES = DATA_BYTES + SCALE_BYTES
UE8M0_BIAS = 127
E4M3_MAX = 448.0


def page_bytes(page_size: int) -> int:
    """Bytes from one page to the next: its tokens' bytes rounded up to a multiple of 576."""
    return -(-page_size * TOKEN_BYTES // DATA_BYTES) * DATA_BYTES


def empty_cache(pages: int, page_size: int, device="cpu", page_stride: int | None = None) -> torch.Tensor:
    """A cache `[pages, page_size, 1, 584]` of uint8 zeros, strided over pages as the engine's pools are."""
    stride = page_bytes(page_size) if page_stride is None else page_stride
    raw = torch.zeros(pages * stride, dtype=torch.uint8, device=device)
    return raw.as_strided((pages, page_size, 1, TOKEN_BYTES), (stride, TOKEN_BYTES, TOKEN_BYTES, 1))


def _regions(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Views of the data `[pages, page_size, 576]` and scale `[pages, page_size, 8]` bytes."""
    raw = cache.view(torch.uint8)
    pages, page_size = raw.shape[:2]
    stride, start = raw.stride(0), raw.storage_offset()
    data = raw.as_strided((pages, page_size, DATA_BYTES), (stride, DATA_BYTES, 1), start)
    scales = raw.as_strided((pages, page_size, SCALE_BYTES), (stride, SCALE_BYTES, 1), start + page_size * DATA_BYTES)
    return data, scales


def write(cache: torch.Tensor, fp8: torch.Tensor, rotary: torch.Tensor, scales: torch.Tensor) -> None:
    """Fills a cache with parts as they are stored, for flat tokens 0, 1, ...

    fp8 `[tokens, 448]` float8_e4m3fn, rotary `[tokens, 64]` bfloat16, scales `[tokens, 7]` uint8 (UE8M0).
    """
    data, scale_region = _regions(cache)
    pages, page_size = data.shape[:2]
    data[..., :FP8_VALUES] = fp8.view(torch.uint8).view(pages, page_size, FP8_VALUES)
    data[..., FP8_VALUES:] = rotary.contiguous().view(torch.uint8).view(pages, page_size, DATA_BYTES - FP8_VALUES)
    scale_region[..., :GROUPS] = scales.view(pages, page_size, GROUPS)


def quantize(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Values `[tokens, 512]` as the parts that `write` takes: each group's scale is the smallest power of two under
    which its largest magnitude fits into e4m3 (448)."""
    groups = values[:, :FP8_VALUES].float().view(-1, GROUPS, GROUP)
    exponent = torch.ceil(torch.log2(groups.abs().amax(-1).clamp_min(1e-30) / E4M3_MAX))
    fp8 = (groups * torch.exp2(-exponent).unsqueeze(-1)).to(torch.float8_e4m3fn)
    scales = (exponent + UE8M0_BIAS).clamp(0, 254).to(torch.uint8)
    return fp8.reshape(-1, FP8_VALUES), values[:, FP8_VALUES:].to(torch.bfloat16), scales


def read(cache: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The values of flat `tokens [...]` as bfloat16 `[..., 512]`: fp8 times scale, rounded once, which is what the
    engine's own fallback attends to (SGLang 0.5.23, `flash_mla_sm120._gather_and_dequant`)."""
    data, scale_region = _regions(cache)
    page_size = data.shape[1]
    page, offset = tokens.long() // page_size, tokens.long() % page_size
    picked, exponents = data[page, offset], scale_region[page, offset][..., :GROUPS]
    fp8 = picked[..., :FP8_VALUES].contiguous().view(torch.float8_e4m3fn).float()
    scale = torch.exp2(exponents.double() - UE8M0_BIAS).masked_fill(exponents == 255, float("nan"))
    fp8 = fp8.view(*tokens.shape, GROUPS, GROUP).double() * scale.unsqueeze(-1)
    rotary = picked[..., FP8_VALUES:].contiguous().view(torch.bfloat16)
    return torch.cat([fp8.flatten(-2).to(torch.bfloat16), rotary], dim=-1)
