"""Which kernel serves a call. Times are given, not measured: what is measured needs a GPU."""

import pytest
import torch
from appliance_kernels.engine import decode_entry
from appliance_kernels.engine import dispatch as dispatch_module
from appliance_kernels.engine.choices import Choices
from appliance_kernels.engine.dispatch import Dispatch, fastest
from appliance_kernels.engine.entry import power_of_two, rounded_rows

STOCK_RESULT = ("from the stock kernel", None)


def stock(**call):
    return STOCK_RESULT


class Measure:
    """A stand-in for the stopwatch: the given times, and a record of what was asked."""

    def __init__(self, times: dict[str, float]):
        self.times, self.asked = times, []

    def __call__(self, kernels, calls, device):
        self.asked.append(sorted(kernels))
        return {name: [self.times[name]] * len(calls) for name in kernels if name in self.times}


OURS_FASTEST = {"appliance": 10.0, "stock": 20.0, "triton": 300.0}


@pytest.fixture
def make_dispatch(tmp_path, standin_kernel):
    def make(times, folder=tmp_path):
        measure = Measure(times)
        return Dispatch(
            decode_entry, lambda entry, device: Choices(folder, {"gpu": "none"}, entry.NAMES), measure
        ), measure

    return make


def test_the_fastest_kernel_serves_and_is_measured_once(make_dispatch, make_call, standin_kernel):
    dispatch, measure = make_dispatch(OURS_FASTEST)
    for _ in range(3):
        out, _ = dispatch(stock, **make_call())
        assert out.shape == (2, 1, 16, 512)
    assert measure.asked == [["appliance", "flashinfer", "stock", "triton"]]
    assert len(standin_kernel) == 3 and dispatch.calls == {"appliance": 3}


def test_where_stock_is_faster_stock_serves(make_dispatch, make_call):
    dispatch, _ = make_dispatch({"appliance": 20.1, "stock": 20.0})
    assert dispatch(stock, **make_call()) == STOCK_RESULT


def test_where_nothing_could_be_measured_stock_serves(make_dispatch, make_call):
    dispatch, _ = make_dispatch({})
    assert dispatch(stock, **make_call()) == STOCK_RESULT


def test_a_stopwatch_that_fails_leaves_stock_and_no_file(make_dispatch, make_call, tmp_path, caplog):
    dispatch, _ = make_dispatch({})

    def no_memory(kernels, calls, device):
        raise torch.OutOfMemoryError("CUDA out of memory")

    dispatch._measure = no_memory
    assert dispatch(stock, **make_call()) == STOCK_RESULT
    assert "out of memory" in caplog.text and not list(tmp_path.iterdir())


def test_the_next_start_reads_the_choice(make_dispatch, make_call):
    first, _ = make_dispatch(OURS_FASTEST)
    first(stock, **make_call())
    second, measure = make_dispatch({"appliance": 99.0, "stock": 1.0})
    second(stock, **make_call())
    assert measure.asked == [] and second.calls == {"appliance": 1}


def test_a_choice_of_a_kernel_that_is_gone_is_measured_anew(make_dispatch, make_call, tmp_path):
    call = make_call()
    Choices(tmp_path, {"gpu": "none"}, ["gone"]).keep(str(decode_entry.bucket_of(call)), "gone", {})
    dispatch, measure = make_dispatch(OURS_FASTEST)
    dispatch(stock, **call)
    assert len(measure.asked) == 1


def test_other_shapes_are_measured_for_themselves(make_dispatch, make_call):
    dispatch, measure = make_dispatch(OURS_FASTEST)
    for change in ({}, {"batch": 5}, {"batch": 7}, {"heads": 8}, {"extra_width": 0}, {"width": 100}):
        dispatch(stock, **make_call(**change))
    assert len(measure.asked) == 4, "5 and 7 requests, and 100 and 128 tokens, share a bucket"


def test_within_a_capture_an_unmeasured_call_is_stocks(make_dispatch, make_call, monkeypatch):
    dispatch, measure = make_dispatch(OURS_FASTEST)
    monkeypatch.setattr(dispatch_module, "capturing", lambda: True)
    assert dispatch(stock, **make_call()) == STOCK_RESULT
    assert measure.asked == [] and not dispatch.chosen
    monkeypatch.setattr(dispatch_module, "capturing", lambda: False)
    dispatch(stock, **make_call())
    assert dispatch.calls == {"stock": 1, "appliance": 1}


def test_prefill_is_stocks_unless_the_kernels_on_trial_are_asked_for(make_dispatch, make_call):
    dispatch, measure = make_dispatch(OURS_FASTEST)
    assert dispatch(stock, **make_call(batch=65)) == STOCK_RESULT
    assert measure.asked == []


def test_prefill_on_trial_is_measured_and_served_by_its_own_kernel(make_dispatch, make_call, monkeypatch):
    monkeypatch.setenv("APPLIANCE_KERNELS_TRIAL", "on")
    prefilled = []
    monkeypatch.setattr(decode_entry.appliance_kernels, "sparse_mla_prefill", lambda **case: prefilled.append(case))
    dispatch, measure = make_dispatch(OURS_FASTEST)
    call = make_call(batch=65)
    dispatch(stock, **call)
    assert len(measure.asked) == 1 and prefilled[0]["q"] is call["q"]
    assert [str(bucket).split(",")[:2] for bucket in dispatch.chosen] == [["prefill", " batch 128"]]
    dispatch(stock, **make_call(batch=64))
    assert len(prefilled) == 1 and dispatch.calls == {"appliance": 2}


def test_large_prefills_are_measured_as_one(make_call, monkeypatch):
    monkeypatch.setenv("APPLIANCE_KERNELS_TRIAL", "on")
    buckets = {decode_entry.bucket_of(make_call(batch=batch)).batch for batch in (513, 1024, 3000)}
    assert buckets == {1024}


def test_other_head_sizes_are_stocks(make_dispatch, make_call):
    dispatch, measure = make_dispatch(OURS_FASTEST)
    assert dispatch(stock, **(make_call() | {"head_dim_v": 256})) == STOCK_RESULT
    assert measure.asked == []


def test_what_our_kernel_refuses_goes_to_stock(make_dispatch, make_call, monkeypatch, caplog):
    """The real checks of the arguments: these are on a CPU, which the kernel does not take."""
    monkeypatch.undo()
    dispatch, _ = make_dispatch(OURS_FASTEST)
    for _ in range(3):
        assert dispatch(stock, **make_call()) == STOCK_RESULT
    assert caplog.text.count("q: expected a CUDA device, got cpu") == 1, "told once, not with every token"


def test_a_value_error_of_another_kernel_is_not_hidden(make_dispatch, make_call):
    dispatch, _ = make_dispatch({"stock": 1.0})

    def broken(**call):
        raise ValueError("of the stock kernel")

    with pytest.raises(ValueError, match="of the stock kernel"):
        dispatch(broken, **make_call())


def test_made_calls_have_the_buckets_size_and_tokens_of_the_cache(make_call):
    call = make_call(batch=5, width=100, extra_width=70)
    bucket = decode_entry.bucket_of(call)
    made, short = bucket.calls_like(call)
    assert decode_entry.bucket_of(made) == decode_entry.bucket_of(short) == bucket == (8, 16, 128, 256, 128, 64)
    assert made["q"].shape == (8, 1, 16, 512) and made["q"].dtype == call["q"].dtype
    for indices, lengths, cache in (
        ("indices", "topk_length", "k_cache"), ("extra_indices_in_kvcache", "extra_topk_length", "extra_k_cache"),
    ):  # fmt: skip
        tokens = call[cache].shape[0] * call[cache].shape[1]
        assert made[indices].dtype == torch.int32 and made[indices].min() >= 0 and made[indices].max() < tokens
        assert made[lengths].dtype == torch.int32 and (made[lengths] == 128).all() and (short[lengths] == 16).all()
    assert made["k_cache"] is call["k_cache"]


@pytest.mark.parametrize(
    "times, name",
    [
        ({"appliance": [1, 1], "stock": [2, 2]}, "appliance"),
        ({"appliance": [1, 2.1], "stock": [2, 2]}, "stock"),
        ({"appliance": [1, 2], "stock": [2, 2]}, "appliance"),
        ({"appliance": [1, 1], "triton": [0.5, 1], "stock": [2, 2]}, "triton"),
        ({"appliance": [1, 1], "triton": [0.1, 3], "stock": [2, 2]}, "appliance"),
        ({"stock": [2, 2]}, "stock"),
        ({"appliance": [1, 1]}, "stock"),
        ({}, "stock"),
    ],
)
def test_never_slower_than_stock_at_any_length(times, name):
    """Where stock itself could not be measured, nothing says that another kernel is not slower."""
    assert fastest(times) == name


def test_rounding():
    batches = (1, 2, 3, 4, 5, 8, 9, 16, 17, 63, 64, 65, 300)
    assert [rounded_rows(n) for n in batches] == [1, 2, 4, 4, 8, 8, 16, 16, 24, 64, 64, 128, 512]
    assert [power_of_two(n) for n in (0, 1, 2, 3, 128, 129, 512)] == [0, 1, 2, 4, 128, 256, 512]
