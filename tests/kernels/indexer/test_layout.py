"""The indexer's pages, byte by byte against their description, and against SGLang's own reader."""

import struct

import torch
from appliance_kernels.indexer import layout


def test_every_byte_lies_where_the_layout_says():
    generator = torch.Generator().manual_seed(0)
    cache = layout.empty_cache(3, page_stride=layout.PAGE_BYTES + 16)
    values = torch.randint(0, 0x7F, (192, 128), generator=generator, dtype=torch.uint8)
    scales = torch.rand(192, generator=generator)
    layout.write(cache, values.view(torch.float8_e4m3fn), scales)
    raw = bytes(cache.as_strided((3 * cache.stride(0),), (1,)).tolist())
    for token in (0, 1, 63, 64, 191):
        page, offset = divmod(token, 64)
        start = page * (8448 + 16)
        assert raw[start + offset * 128 : start + offset * 128 + 128] == bytes(values[token].tolist())
        at = start + 64 * 128 + offset * 4
        assert struct.unpack("<f", raw[at : at + 4])[0] == scales[token]


def test_read_gives_back_what_was_written():
    generator = torch.Generator().manual_seed(1)
    keys = torch.randn(128, 128, generator=generator)
    cache = layout.empty_cache(2)
    values, scales = layout.quantize(keys)
    layout.write(cache, values, scales)
    order = torch.randperm(128, generator=generator)
    got, got_scales = layout.read(cache, order)
    assert torch.equal(got.view(torch.uint8), values[order].view(torch.uint8)) and torch.equal(
        got_scales, scales[order]
    )
    back = got.float() * got_scales.unsqueeze(-1)
    assert (back - keys[order]).norm() / keys.norm() < 0.04
