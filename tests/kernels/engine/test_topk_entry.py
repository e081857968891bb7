"""SGLang's top-k of the indexer: which calls are taken, and how they are passed on."""

import inspect

import pytest
import torch
from appliance_kernels.engine import topk_entry
from appliance_kernels.engine.choices import Choices
from appliance_kernels.engine.dispatch import Dispatch
from appliance_kernels.indexer import reference, stock

engine = pytest.importorskip("sglang.kernels.ops.attention.dsv4.topk", reason="needs SGLang")
TOPK = 512


@pytest.fixture
def call():
    """The positional arguments with which SGLang 0.5.23 calls its first kernel."""
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(3, 3000, generator=generator)
    table = torch.randint(0, 500, (3, 47), generator=generator, dtype=torch.int32)
    return (
        scores, torch.tensor([3000, 100, 0], dtype=torch.int32), table,
        torch.zeros(3, TOPK, dtype=torch.int32), 64, torch.zeros(3, TOPK, dtype=torch.int32),
    )  # fmt: skip


@pytest.fixture
def standin_kernel(monkeypatch):
    """In place of our CUDA kernel, which needs a GPU: the reference."""
    calls = []

    def kernel(scores, lengths, page_table=None, tokens=None, page_size=None, positions=None):
        calls.append(scores)
        best = reference.topk_positions(scores, lengths, (positions if tokens is None else tokens).shape[1])
        if positions is not None:
            positions.copy_(best)
        if tokens is not None:
            tokens.copy_(reference.tokens_of(best, page_table, page_size))

    monkeypatch.setattr(topk_entry.indexer, "topk_transform", kernel)
    return calls


def dispatch(tmp_path, entry, **times) -> Dispatch:
    return Dispatch(
        entry,
        lambda entry, device: Choices(tmp_path, {"gpu": "none"}, entry.NAMES),
        lambda kernels, calls, device: {name: [times[name]] * len(calls) for name in kernels},
    )


@pytest.mark.parametrize(
    "function, entry",
    [(engine.topk_transform_paged, topk_entry.FIRST), (engine.topk_transform_paged_v2, topk_entry.SECOND)],
)
def test_the_engines_functions_have_these_parameters(function, entry):
    assert tuple(inspect.signature(function).parameters) == entry.PARAMETERS


def test_ours_chooses_what_the_engines_fallback_chooses(tmp_path, call, standin_kernel):
    def unused(**_):
        raise AssertionError("stock was called")

    dispatch(tmp_path, topk_entry.FIRST, appliance=1.0, stock=2.0)(unused, *call)
    want = [torch.zeros_like(call[3]), torch.zeros_like(call[5])]
    stock._torch_topk()(*call[:3], want[0], call[4], want[1])
    for got, expected in ((call[3], want[0]), (call[5], want[1])):
        assert [sorted(row) for row in got.tolist()] == [sorted(row) for row in expected.tolist()]
    assert len(standin_kernel) == 1


def test_the_second_kernel_may_ask_for_positions_alone(tmp_path, call, standin_kernel, monkeypatch):
    arguments = (*call[:2], None, call[3], 64, torch.zeros(4, 2, dtype=torch.int32), None)
    served = dispatch(tmp_path, topk_entry.SECOND, appliance=1.0, stock=2.0)
    monkeypatch.setattr(topk_entry, "plan", lambda lengths: None)  # SGLang's needs a GPU
    served(None, *arguments)
    assert torch.equal(call[3], reference.topk_positions(call[0], call[1], TOPK))


def test_where_stock_is_faster_stock_is_called_as_it_was(tmp_path, call, standin_kernel):
    seen = []
    dispatch(tmp_path, topk_entry.FIRST, appliance=3.0, stock=2.0)(lambda **named: seen.append(named), *call)
    [named] = seen
    assert all(named[name] is value for name, value in zip(topk_entry.FIRST.PARAMETERS, call, strict=True))
    assert not standin_kernel


def test_made_calls_have_outputs_and_plans_of_their_own(call, monkeypatch):
    monkeypatch.setattr(topk_entry, "plan", lambda lengths: ("plan of", int(lengths[0])))
    named = dict(zip(topk_entry.SECOND.PARAMETERS, (*call[:5], "a plan", call[5]), strict=True))
    bucket = topk_entry.SECOND.bucket_of(named)
    assert bucket == ("top-k v2", 4, 4096, TOPK)
    made = bucket.calls_like(named)
    assert [int(m["seq_lens"][0]) for m in made] == [4096, 512, 64]
    assert [m["metadata"] for m in made] == [("plan of", 4096), ("plan of", 512), ("plan of", 64)]
    for m in made:
        assert topk_entry.SECOND.bucket_of(m) == bucket and m["page_tables"].shape == (4, 64)
        assert m["out_page_indices"] is not call[3] and m["out_raw_indices"] is not call[5]


def test_what_would_take_too_much_memory_to_measure_is_stocks(call):
    named = dict(zip(topk_entry.FIRST.PARAMETERS, call, strict=True))
    named["scores"] = torch.empty(1, 1).expand(1 << 14, 1 << 15)
    assert topk_entry.FIRST.bucket_of(named) is None
