"""The benchmark's operations on the CPU: float64 references stand in for our kernels, the engine's run as they are."""

from types import SimpleNamespace

import pytest
import torch
from appliance_kernels import reference as decode_reference
from appliance_kernels.bench import contenders
from appliance_kernels.bench import decode as decode_bench
from appliance_kernels.bench import indexer as indexer_bench
from appliance_kernels.bench import prefill as prefill_bench
from appliance_kernels.bench import topk as topk_bench
from appliance_kernels.indexer import reference as logits_reference

CPU = torch.device("cpu")


@pytest.fixture
def decode(monkeypatch):
    monkeypatch.setattr(decode_bench, "prepare", lambda device: None)
    device = SimpleNamespace(heads_per_block=16, tokens_per_tile=32, blocks=132)
    monkeypatch.setattr(decode_bench.decode, "_device", lambda *_: device)
    monkeypatch.setattr(decode_bench, "plan", lambda *_: SimpleNamespace(cluster=2, splits=3))
    monkeypatch.setattr(decode_bench, "WINDOW_PAGES", 4)
    monkeypatch.setattr(decode_bench, "EXTRA_PAGES", 8)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    monkeypatch.setattr(contenders, "sglang_triton", lambda file: None)
    monkeypatch.setattr(contenders, "ours", lambda case: lambda: decode_reference.sparse_mla_decode(**case))
    return decode_bench.Decode(CPU)


@pytest.fixture
def indexer(monkeypatch):
    monkeypatch.setattr(indexer_bench, "prepare", lambda device: None)
    monkeypatch.setattr(indexer_bench.logits, "_blocks", lambda device: 132)
    monkeypatch.setattr(indexer_bench, "PAGES", 64)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (12, 0))
    monkeypatch.setattr(indexer_bench, "paged_mqa_logits", logits_reference.paged_mqa_logits)
    return indexer_bench.IndexerLogits(CPU)


@pytest.fixture
def prefill(monkeypatch):
    monkeypatch.setattr(prefill_bench, "prepare", lambda device: None)
    monkeypatch.setattr(prefill_bench.prefill, "_device", lambda *_: (16, 264))
    monkeypatch.setattr(prefill_bench, "WINDOW_PAGES", 4)
    monkeypatch.setattr(prefill_bench, "EXTRA_PAGES", 8)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    monkeypatch.setattr(contenders, "sglang_triton", lambda file: None)
    for name in ("ours", "ours_prefill"):
        monkeypatch.setattr(contenders, name, lambda case: lambda: decode_reference.sparse_mla_decode(**case))
    return prefill_bench.Prefill(CPU)


@pytest.fixture
def topk(monkeypatch):
    def paged_topk(tokens, **case):
        logits = logits_reference.paged_mqa_logits(**case)
        best = logits_reference.topk_positions(logits, case["lengths"], tokens.shape[1])
        tokens.copy_(logits_reference.tokens_of(best, case["page_table"], 64))

    def topk_transform(scores, lengths, page_table, tokens, page_size):
        best = logits_reference.topk_positions(scores, lengths, tokens.shape[1])
        tokens.copy_(logits_reference.tokens_of(best, page_table, page_size))

    monkeypatch.setattr(topk_bench, "prepare", lambda device: None)
    monkeypatch.setattr(topk_bench.topk, "_limits", lambda device: (264, 16))
    monkeypatch.setattr(topk_bench, "PAGES", 64)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (12, 0))
    monkeypatch.setattr(topk_bench, "paged_mqa_logits", logits_reference.paged_mqa_logits)
    monkeypatch.setattr(topk_bench, "paged_topk", paged_topk)
    monkeypatch.setattr(topk_bench, "topk_transform", topk_transform)
    return topk_bench.IndexerTopk(CPU)


def test_decode_cases(decode):
    shapes = decode.shapes(quick=False)
    assert decode.shapes(quick=True) == shapes[:7] and len(shapes) == 63
    for shape in (shapes[1], shapes[14], shapes[28], shapes[57]):  # heads 16, 32, 16, 16
        case = decode.case(shape)
        assert list(case.kernels) == ["appliance"] and case.error(case.kernels["appliance"]()) == 0
        tokens = (1 if shape["shared_tokens"] else shape["batch"]) * (128 + shape["extra"])
        assert case.bytes == tokens * 584
        assert case.blocks == shape["batch"] * (shape["heads"] // 16) * 6 and case.blocks_at_once == 132


def test_what_cannot_run_says_what_it_needs(decode):
    assert set(decode.left_out) == {"FlashMLA", "FlashInfer", "SGLang Triton"}
    assert decode.left_out["FlashInfer"] == "needs sglang, flashinfer-python and sm_120"


def test_indexer_cases(indexer):
    assert len(indexer.shapes(quick=False)) == 16 and len(indexer.shapes(quick=True)) == 4
    case = indexer.case({"batch": 3, "context": 1000})
    assert case.error(case.kernels["appliance"]()) == 0
    assert case.bytes == 3 * (1000 * 136 + 64 * 132)
    assert 0 < case.error(case.kernels["SGLang torch"]()) < 1e-2, "the engine's own fallback, on the CPU"


def test_what_the_indexer_leaves_out_is_said(indexer):
    assert indexer.left_out["DeepGEMM"] == "needs sm_90 or sm_100"
    assert set(indexer.left_out) <= {"DeepGEMM", "SGLang TileLang"}


def test_prefill_cases(prefill):
    assert len(prefill.shapes(quick=False)) == 23 and len(prefill.shapes(quick=True)) == 3
    case = prefill.case({"heads": 32, "batch": 70, "window": 128, "extra": 64})
    assert case.error(case.kernels["appliance"]()) == 0
    assert case.bytes == 70 * (192 * 584 + 32 * 2048) and case.blocks == 140 and case.blocks_at_once == 264
    assert set(prefill.left_out) == {"FlashMLA sparse prefill", "FlashMLA decode", "FlashInfer", "SGLang Triton"}


def test_topk_cases(topk):
    assert len(topk.shapes(quick=False)) == 16 and len(topk.shapes(quick=True)) == 6
    case = topk.case({"batch": 2, "context": 3000})
    assert case.blocks == 2 and case.error(case.kernels["appliance"]()) == 0
    for name in ("top-k appliance", "top-k SGLang torch"):
        assert case.error(case.kernels[name]()) == 0
    assert 0 <= case.error(case.kernels["SGLang torch"]()) < 1e-2, "the engine's own fallback, on the CPU"


def test_worse_tokens_are_seen():
    logits = torch.arange(1000).double().view(1, -1)
    table = torch.arange(16, dtype=torch.int32).view(1, -1)
    assert topk_bench.lost(torch.arange(488, 1000).view(1, -1), logits, table) == 0
    assert topk_bench.lost(torch.arange(487, 999).view(1, -1), logits, table) > 1e-4
