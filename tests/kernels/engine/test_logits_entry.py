"""SGLang's logits of the indexer: which calls are taken, and how they are passed on."""

import inspect

import pytest
import torch
from appliance_kernels.engine import logits_entry
from appliance_kernels.engine.choices import Choices
from appliance_kernels.engine.dispatch import Dispatch
from appliance_kernels.indexer import reference, stock
from appliance_kernels.indexer.cases import random_cache, random_case


@pytest.fixture
def call():
    """The positional arguments with which SGLang 0.5.23 calls it."""
    generator = torch.Generator().manual_seed(2)
    case = random_case([100, 1, 64], random_cache(8, generator), 128, generator)
    return (
        case["q"].unsqueeze(1), case["cache"], case["weights"], case["lengths"], case["page_table"], None, 128, False
    )  # fmt: skip


@pytest.fixture
def standin_kernel(monkeypatch):
    """In place of our CUDA kernel, which needs a GPU: the float64 reference."""
    calls = []

    def kernel(*arguments):
        calls.append(arguments)
        return reference.paged_mqa_logits(*arguments).float()

    monkeypatch.setattr(logits_entry.indexer, "paged_mqa_logits", kernel)
    return calls


def dispatch(tmp_path, **times) -> Dispatch:
    return Dispatch(
        logits_entry,
        lambda entry, device: Choices(tmp_path, {"gpu": "none"}, entry.NAMES),
        lambda kernels, calls, device: {name: [times[name]] * len(calls) for name in kernels},
    )


def test_both_of_the_engines_functions_have_these_parameters():
    tilelang = stock.functions(
        stock.source(stock.TILELANG_FILE), {"tilelang_fp8_paged_mqa_logits"}, {}
    )["tilelang_fp8_paged_mqa_logits"]  # fmt: skip
    for function in (stock._torch_fallback(), tilelang):
        assert tuple(inspect.signature(function).parameters) == logits_entry.PARAMETERS


def test_ours_says_what_the_engines_fallback_says(tmp_path, call, standin_kernel):
    fallback = stock._torch_fallback()
    ours = dispatch(tmp_path, appliance=1.0, stock=2.0)(fallback, *call)
    assert len(standin_kernel) == 1
    want = fallback(*call)
    for row, length in enumerate([100, 1, 64]):
        error = (ours[row, :length] - want[row, :length]).norm() / want[row, :length].norm()
        assert error < 2e-2


def test_where_stock_is_faster_stock_is_called_as_it_was(tmp_path, call, standin_kernel):
    fallback = stock._torch_fallback()
    assert torch.equal(dispatch(tmp_path, appliance=3.0, stock=2.0)(fallback, *call), fallback(*call))
    assert not standin_kernel


def test_cleaned_logits_are_stocks(tmp_path, call, standin_kernel):
    served = dispatch(tmp_path, appliance=1.0, stock=2.0)
    assert served(lambda **arguments: arguments["clean_logits"], *call[:-1], True) is True
    assert not standin_kernel


def test_made_calls_have_full_and_short_contexts(call):
    named = dict(zip(logits_entry.PARAMETERS, call, strict=True))
    bucket = logits_entry.bucket_of(named)
    assert bucket == (4, 128)
    made = bucket.calls_like(named)
    assert [int(m["seq_lens"][0]) for m in made] == [128, 16, 2]
    for m in made:
        assert logits_entry.bucket_of(m) == bucket and m["seq_lens"].dtype == torch.int32
        assert m["page_table"].shape == (4, 2) and m["page_table"].max() < 8
        assert m["q_fp8"].dtype == torch.float8_e4m3fn and m["kvcache_fp8"] is named["kvcache_fp8"]


def test_what_would_take_too_much_memory_to_measure_is_stocks(call):
    named = dict(zip(logits_entry.PARAMETERS, call, strict=True)) | {"max_seq_len": 1 << 27}
    assert logits_entry.bucket_of(named) is None
