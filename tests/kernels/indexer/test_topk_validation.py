"""What the top-k does not take is refused with a ValueError that names it. Fake tensors: no GPU, no memory."""

import pytest
import torch
from appliance_kernels.indexer import topk
from torch._subclasses.fake_tensor import FakeTensorMode

CUDA = torch.device("cuda", 0)
F32, I32, I64 = torch.float32, torch.int32, torch.int64


def tensor(*shape, dtype=I32, device=CUDA):
    return lambda: torch.empty(*shape, dtype=dtype, device=device)


def strided(shape, strides, dtype):
    return lambda: torch.empty_strided(shape, strides, dtype=dtype, device=CUDA)


def good():
    return {
        "scores": tensor(3, 5000, dtype=F32)(), "lengths": tensor(3)(), "page_table": tensor(3, 80)(),
        "tokens": tensor(3, 512)(), "page_size": 64, "positions": tensor(3, 512)(),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"scores": strided((3, 5000), (5003, 1), F32)},
        {"lengths": tensor(3, 1)},
        {"positions": lambda: None},
        {"tokens": lambda: None, "page_table": lambda: None, "page_size": lambda: None},
        {"tokens": tensor(3, 2048), "positions": lambda: None},
        {"page_table": strided((3, 80), (100, 1), I32)},
    ],
)
def test_good_arguments_pass(change):
    topk.check_arguments(**(good() | {name: make() for name, make in change.items()}))


BAD = [
    ("scores", lambda: None, "scores: expected a tensor, got NoneType"),
    ("scores", tensor(3, 5000, dtype=F32, device="cpu"), "scores: expected a CUDA device, got cpu"),
    ("scores", tensor(3, 5000, dtype=torch.bfloat16), "scores: expected dtype torch.float32, got torch.bfloat16"),
    ("scores", tensor(0, 5000, dtype=F32), "scores: expected 1 to"),
    ("scores", tensor(3, 2**24 + 1, dtype=F32), "scores: expected 1 to 16777216 columns, got 16777217"),
    ("scores", strided((3, 5000), (1, 3), F32), "scores: expected rows without gaps"),
    ("lengths", tensor(3, dtype=I64), "lengths: expected dtype torch.int32, got torch.int64"),
    ("lengths", tensor(4), r"lengths: expected shape \[3\], got \[4\]"),
    ("lengths", strided((3,), (2,), I32), "lengths: expected a contiguous tensor"),
    ("page_table", lambda: None, "page_table: expected a tensor, got NoneType"),
    ("page_table", tensor(4, 80), r"page_table: expected shape \[3, any\]"),
    ("page_table", tensor(3, 0), "page_table: expected at least one column, got 0"),
    ("tokens", tensor(3, 512, dtype=I64), "tokens: expected dtype torch.int32"),
    ("tokens", tensor(3, 2049), "tokens: expected 1 to 2048 columns, got 2049"),
    ("positions", tensor(3, 511), r"positions: expected shape \[3, 512\], got \[3, 511\]"),
    ("page_size", lambda: 48, "page_size: expected a power of two up to 1048576, got 48"),
    ("page_size", lambda: True, "page_size: expected a power of two"),
]


@pytest.mark.parametrize("name, value, message", BAD)
def test_bad_argument_is_named(name, value, message):
    with pytest.raises(ValueError, match=f"topk_transform: {message}"):
        topk.check_arguments(**(good() | {name: value()}))


def test_nothing_to_write_is_refused():
    with pytest.raises(ValueError, match="tokens and positions: expected at least one of them, got none"):
        topk.check_arguments(**(good() | {"tokens": None, "positions": None}))


@pytest.mark.parametrize(
    "rows, width, blocks",
    [
        (1, 512, 1),
        (1, 8192, 1),
        (1, 16384, 2),
        (1, 100_000, 8),
        (1, 2**20, 16),
        (16, 2**20, 16),
        (64, 2**20, 4),
        (9999, 2**20, 1),
    ],
)
def test_blocks_of_a_row_on_an_h200(rows, width, blocks):
    assert topk.blocks_of_row(rows, width, 264, 16) == blocks


def test_no_clusters_no_sharing():
    assert topk.blocks_of_row(1, 2**20, 188, 1) == 1
