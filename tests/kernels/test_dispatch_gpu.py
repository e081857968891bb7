"""The engine's dispatch with the real kernel and the real stopwatch, on a GPU. Stock is a stand-in in plain torch."""

import pytest
import torch
from appliance_kernels import reference
from appliance_kernels.cases import random_cache, random_case
from appliance_kernels.engine import candidates, choices, dispatch, plugin


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
    return lambda: dispatch.Dispatch(plugin.open_choices)


def close(got, want):
    return float((got.double() - want.double()).norm() / want.double().norm()) < 1e-2


def test_the_faster_kernel_is_found_kept_and_right(make_dispatch, call, tmp_path):
    first = make_dispatch()
    out, _ = first(stock, **call)
    assert list(first.chosen.values()) == [candidates.APPLIANCE]
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
    assert close(out, stock(**call)[0]) and served.calls == {candidates.APPLIANCE: 2}


def test_a_shape_first_seen_in_a_capture_is_stocks(make_dispatch, call):
    served = make_dispatch()
    stock(**call)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        served(stock, **call)
    assert served.calls == {candidates.STOCK: 1} and not served.chosen


def test_choices_are_keyed_by_this_gpu(gpu):
    assert plugin.open_choices(gpu)._key["gpu"] == torch.cuda.get_device_name(gpu)
    assert choices.installed("torch") in plugin.open_choices(gpu)._key.values()
