"""The 584-byte layout, byte by byte against its description."""

import struct

import pytest
import torch
from appliance_kernels import layout


def test_sizes():
    assert layout.TOKEN_BYTES == 584
    assert [layout.page_bytes(n) for n in (256, 64, 2)] == [149760, 37440, 1728]


@pytest.mark.parametrize("page_size", [2, 64])
def test_every_byte_lies_where_the_layout_says(page_size):
    generator = torch.Generator().manual_seed(0)
    cache = layout.empty_cache(3, page_size)
    tokens = 3 * page_size
    fp8 = torch.randint(0, 0x7F, (tokens, 448), generator=generator, dtype=torch.uint8)
    rotary = torch.randn(tokens, 64, generator=generator).bfloat16()
    scales = torch.randint(0, 255, (tokens, 7), generator=generator, dtype=torch.uint8)
    layout.write(cache, fp8.view(torch.float8_e4m3fn), rotary, scales)
    raw = bytes(cache.as_strided((3 * cache.stride(0),), (1,)).tolist())
    for token in (0, 1, page_size - 1, page_size, tokens - 1):
        page, offset = divmod(token, page_size)
        data = page * cache.stride(0) + offset * 576
        assert raw[data : data + 448] == bytes(fp8[token].tolist())
        assert list(struct.unpack("<64H", raw[data + 448 : data + 576])) == [
            v & 0xFFFF for v in rotary[token].view(torch.int16).tolist()
        ]
        at = page * cache.stride(0) + page_size * 576 + offset * 8
        assert raw[at : at + 7] == bytes(scales[token].tolist())


def e4m3(code: int) -> float:
    """OCP 8-bit floating point, E4M3: no infinity, one NaN a sign."""
    sign, exponent, mantissa = -1 if code & 0x80 else 1, code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    return sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


@pytest.mark.parametrize("scale", [0, 1, 100, 127, 200, 240])
def test_read_decodes_every_code(scale):
    cache = layout.empty_cache(1, 1)
    codes = torch.arange(448) % 256
    layout.write(cache, codes.to(torch.uint8).view(torch.float8_e4m3fn).view(1, 448), torch.zeros(1, 64).bfloat16(),
                 torch.full((1, 7), scale, dtype=torch.uint8))  # fmt: skip
    want = torch.tensor([e4m3(int(c)) * 2.0 ** (scale - 127) for c in codes], dtype=torch.float64).to(torch.bfloat16)
    torch.testing.assert_close(layout.read(cache, torch.tensor([0]))[0, :448], want, rtol=0, atol=0, equal_nan=True)


def test_scale_255_is_nan():
    cache = layout.empty_cache(1, 1)
    raw = cache.as_strided((layout.page_bytes(1),), (1,))
    raw[576] = 255
    assert layout.read(cache, torch.tensor([0]))[0, :64].isnan().all()


def test_quantize_and_read_come_back_within_half_a_step():
    values = torch.randn(128, 512, generator=torch.Generator().manual_seed(1)) * 3
    cache = layout.empty_cache(2, 64)
    layout.write(cache, *layout.quantize(values))
    back = layout.read(cache, torch.arange(128)).float()
    largest = values[:, :448].view(128, 7, 64).abs().amax(-1, keepdim=True)
    error = (back - values)[:, :448].view(128, 7, 64).abs()
    assert (error <= largest * 2**-3).all() and error.mean() / values.abs().mean() < 0.03
    torch.testing.assert_close(back[:, 448:], values[:, 448:].bfloat16().float(), rtol=0, atol=0)
