"""What the kernel does not take is refused with a ValueError that names it. Fake tensors: no GPU, no memory."""

import pytest
import torch
from appliance_kernels.indexer.logits import check_arguments
from torch._subclasses.fake_tensor import FakeTensorMode

CUDA = torch.device("cuda", 0)
E4M3, F32, I32, U8 = torch.float8_e4m3fn, torch.float32, torch.int32, torch.uint8


def tensor(*shape, dtype=I32, device=CUDA):
    return lambda: torch.empty(*shape, dtype=dtype, device=device)


def strided(shape, strides, dtype, device=CUDA):
    return lambda: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def cache(pages=8, stride=8448, dtype=U8):
    return strided((pages, 64, 1, 132), (stride, 132, 132, 1), dtype)


def good():
    return {
        "q": tensor(3, 64, 128, dtype=E4M3)(), "cache": cache()(), "weights": tensor(3, 64, dtype=F32)(),
        "lengths": tensor(3)(), "page_table": tensor(3, 20)(), "width": 1280, "out": None,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"q": tensor(3, 1, 64, 128, dtype=E4M3)},
        {"q": strided((3, 64, 128), (16384, 128, 1), E4M3)},
        {"cache": cache(stride=8448 + 16, dtype=E4M3)},
        {"lengths": tensor(3, 1)},
        {"page_table": strided((3, 20), (50, 1), I32)},
        {"out": tensor(3, 1280, dtype=F32)},
        {"out": strided((3, 1280), (2000, 1), F32)},
        {"width": 1},
    ],
)
def test_good_arguments_pass(change):
    check_arguments(**(good() | {name: value() if callable(value) else value for name, value in change.items()}))


BAD = [
    ("q", lambda: None, "q: expected a tensor, got NoneType"),
    ("q", tensor(3, 64, 128, dtype=torch.bfloat16), "q: expected dtype torch.float8_e4m3fn, got torch.bfloat16"),
    ("q", tensor(3, 32, 128, dtype=E4M3), r"q: expected shape \[any, 64, 128\], got \[3, 32, 128\]"),
    ("q", tensor(3, 2, 64, 128, dtype=E4M3), r"q: expected shape \[any, 1, 64, 128\]"),
    ("q", tensor(3, 64, 128, dtype=E4M3, device="cpu"), "q: expected a CUDA device, got cpu"),
    ("q", tensor(0, 64, 128, dtype=E4M3), "q: expected at least one row"),
    ("q", strided((3, 64, 128), (8192, 1, 64), E4M3), "q: expected rows without gaps"),
    ("q", strided((3, 64, 128), (8200, 128, 1), E4M3), "q: expected a row stride that is a multiple of 16, got 8200"),
    ("cache", tensor(8, 64, 1, 132, dtype=torch.int8), "cache: expected dtype torch.uint8 or torch.float8_e4m3fn"),
    ("cache", tensor(8, 128, 1, 132, dtype=U8), r"cache: expected shape \[any, 64, 1, 132\]"),
    ("cache", tensor(0, 64, 1, 132, dtype=U8), "cache: expected 1 to 2"),
    ("cache", cache(stride=8448 - 16), "cache: expected a page stride of at least 8448 bytes"),
    ("cache", cache(stride=8448 + 8), "multiple of 16, got 8456"),
    ("cache", tensor(8, 64, 1, 132, dtype=U8, device="cpu"), r"cache: expected device cuda:0 \(that of q\), got cpu"),
    ("weights", tensor(3, 64, dtype=torch.bfloat16), "weights: expected dtype torch.float32"),
    ("weights", tensor(3, 32, dtype=F32), r"weights: expected shape \[3, 64\]"),
    ("weights", strided((3, 64), (1, 3), F32), "weights: expected rows without gaps"),
    ("lengths", tensor(3, dtype=torch.int64), "lengths: expected dtype torch.int32"),
    ("lengths", tensor(4), r"lengths: expected shape \[3\], got \[4\]"),
    ("lengths", strided((3,), (2,), I32), "lengths: expected a contiguous tensor"),
    ("page_table", tensor(3, 20, dtype=torch.int64), "page_table: expected dtype torch.int32"),
    ("page_table", tensor(2, 20), r"page_table: expected shape \[3, any\]"),
    ("page_table", tensor(3, 0), "page_table: expected 1 to"),
    ("width", lambda: 0, "width: expected 1 to 16777216 columns, got 0"),
    ("width", lambda: 1.5, "width: expected 1 to 16777216 columns, got 1.5"),
    ("width", lambda: True, "width: expected 1 to 16777216 columns, got True"),
    ("width", lambda: 2**24 + 1, "width: expected 1 to 16777216 columns"),
    ("out", tensor(3, 1281, dtype=F32), r"out: expected shape \[3, 1280\]"),
    ("out", tensor(3, 1280, dtype=torch.float16), "out: expected dtype torch.float32"),
    ("out", strided((3, 1280), (1, 3), F32), "out: expected rows without gaps"),
]


@pytest.mark.parametrize("name, value, message", BAD)
def test_bad_argument_is_named(name, value, message):
    with pytest.raises(ValueError, match=message):
        check_arguments(**(good() | {name: value()}))
