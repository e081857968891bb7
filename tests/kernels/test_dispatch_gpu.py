"""The engine's dispatch with the real kernel and the real stopwatch, on a GPU. Stock is a stand-in in plain torch."""

import pytest
import torch
from appliance_kernels import reference
from appliance_kernels.cases import random_cache, random_case
from appliance_kernels.engine import choices, decode_entry, dispatch, logits_entry, plugin
from appliance_kernels.engine.entry import APPLIANCE, STOCK
from appliance_kernels.indexer import layout
from appliance_kernels.indexer.cases import random_cache as random_keys
from appliance_kernels.indexer.cases import random_case as random_logits


@pytest.fixture
def call(gpu):
    generator = torch.Generator(gpu).manual_seed(1)
    caches = random_cache(64, 256, generator), random_cache(256, 64, generator)
    case = random_case(7, 16, caches[0], 128, caches[1], 512, generator=generator)
    names = {"extra_indices": "extra_indices_in_kvcache"}
    return {names.get(name, name): value for name, value in case.items()} | {"head_dim_v": 512, "softmax_scale": None}


def stock(*, head_dim_v, extra_indices_in_kvcache, **call):
    """Stand-in: the float64 formulas, slow and without a host synchronization, so that a graph takes it."""
    out, lse = reference.sparse_mla_decode(**call, extra_indices=extra_indices_in_kvcache)
    return out.bfloat16(), lse.float()


@pytest.fixture
def make_dispatch(tmp_path, monkeypatch):
    monkeypatch.setenv("APPLIANCE_KERNELS_CACHE", str(tmp_path))
    return lambda: dispatch.Dispatch(decode_entry, plugin.open_choices)


def close(got, want):
    return float((got.double() - want.double()).norm() / want.double().norm()) < 1e-2


def test_the_faster_kernel_is_found_kept_and_right(make_dispatch, call, tmp_path):
    first = make_dispatch()
    out, _ = first(stock, **call)
    assert list(first.chosen.values()) == [APPLIANCE]
    assert close(out, stock(**call)[0])
    [file] = tmp_path.glob("*.json")
    assert torch.cuda.get_device_name() in file.read_text()
    second = make_dispatch()
    second._measure = None  # nothing is left to measure
    assert close(second(stock, **call)[0], out)


def test_what_was_chosen_is_captured(make_dispatch, call):
    served = make_dispatch()
    served(stock, **call)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, _ = served(stock, **call)
    call["q"].copy_(torch.randn_like(call["q"]))
    graph.replay()
    assert close(out, stock(**call)[0]) and served.calls == {APPLIANCE: 2}


def test_a_shape_first_seen_in_a_capture_is_stocks(make_dispatch, call):
    served = make_dispatch()
    stock(**call)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        served(stock, **call)
    assert served.calls == {STOCK: 1} and not served.chosen


def test_choices_are_keyed_by_this_gpu(gpu):
    assert plugin.open_choices(decode_entry, gpu)._key["gpu"] == torch.cuda.get_device_name(gpu)
    assert choices.installed("torch") in plugin.open_choices(decode_entry, gpu)._key.values()


def test_the_indexers_logits_are_served_too(gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("APPLIANCE_KERNELS_CACHE", str(tmp_path))
    case = random_logits([3000, 17, 64], random_keys(64, torch.Generator(gpu).manual_seed(3)), 3000,
                         torch.Generator(gpu).manual_seed(4))  # fmt: skip
    names = {"q": "q_fp8", "cache": "kvcache_fp8", "weights": "weight", "lengths": "seq_lens", "width": "max_seq_len"}
    call = {names.get(name, name): value for name, value in case.items()}
    call |= {"q_fp8": case["q"].unsqueeze(1), "deep_gemm_metadata": None, "clean_logits": False}

    def slow(*, q_fp8, kvcache_fp8, weight, seq_lens, page_table, deep_gemm_metadata, max_seq_len, clean_logits):
        """Stand-in for the engine's: the formula in fp32, without a host synchronization."""
        keys, scales = layout.regions(kvcache_fp8)
        pages = page_table.long()
        scores = torch.einsum("bptd,bhd->bpth", keys.float()[pages], q_fp8[:, 0].float()).relu()
        logits = torch.einsum("bpth,bh->bpt", scores, weight) * scales.clone().view(torch.float32)[pages].squeeze(-1)
        return logits.flatten(1)[:, :max_seq_len]

    served = dispatch.Dispatch(logits_entry, plugin.open_choices)
    out = served(slow, *(call[name] for name in logits_entry.PARAMETERS))
    assert list(served.chosen.values()) == [APPLIANCE] and served.calls == {APPLIANCE: 1}
    want = slow(**call)
    for row, length in enumerate([3000, 17, 64]):
        torch.testing.assert_close(out[row, :length], want[row, :length], rtol=1e-3, atol=1e-2)
    assert served(slow, **(call | {"clean_logits": True})) is not None and served.calls[STOCK] == 1
