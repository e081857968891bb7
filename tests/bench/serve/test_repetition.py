import pytest

from appliance.bench.serve.repetition import first_line, repetition_of, require_alone, require_uncached
from appliance.documents import Workload
from appliance.errors import CheckFailed

PLAIN = Workload(name="plain", input_tokens=128, output_tokens=32, concurrency=2, requests=4)
# Fields of a result line of sglang.benchmark.serving 0.5.23; numbers made for this test.
RESULT = {
    "duration": 2.0,
    "output_lens": [32, 32, 0, 7],
    "errors": ["", "", "Service Unavailable: no_available_workers", ""],
} | {
    f"{statistic}_{name}_ms": float(number)
    for number, statistic in enumerate(("mean", "median", "p90", "p99"))
    for name in ("ttft", "tpot", "itl", "e2e_latency")
}
COUNTED = {
    "prefill": {
        "prompt_tokens": 560, "cached_tokens": 12, "kv_transfers": 3, "kv_bytes": 1e6, "kv_latency_ms": 6.0,
        "kv_speed_gb_s": 1.5, "kv_speeds": 3,
    }
}  # fmt: skip


def found(workload=PLAIN, counted=COUNTED, **changes):
    return repetition_of(RESULT | changes, counted, workload, started="2026-01-01T00:00:00+00:00")


def test_prompt_tokens_are_the_engines_count_and_output_tokens_the_answers():
    repetition = found()
    assert (repetition.requests, repetition.input_tokens, repetition.cached_tokens) == (4, 560, 12)
    assert (repetition.output_tokens, repetition.output_tokens_per_s) == (71, 35.5)
    assert repetition.ttft_ms.model_dump() == {"mean": 0.0, "p50": 1.0, "p90": 2.0, "p99": 3.0}


def test_failures_are_counted_and_so_is_an_answer_that_broke_off():
    repetition = found()
    assert repetition.completed == 2
    assert repetition.failures == {"Service Unavailable: no_available_workers": 1, "the answer broke off": 1}


def test_structured_output_may_end_by_itself():
    workload = PLAIN.model_copy(update={"name": "structured output"})
    assert found(workload).failures == {"Service Unavailable: no_available_workers": 1}


def test_kv_transfers_are_means_of_the_engines_sums_and_absent_without_prefill():
    transfers = found().kv_transfers
    assert (transfers.transfers, transfers.latency_ms, transfers.gb_s) == (3, 2.0, 0.5)
    assert found(counted={"aggregated": {"prompt_tokens": 560, "cached_tokens": 0}}).kv_transfers is None


def test_goodput_is_the_generators_where_there_is_an_objective():
    assert found().goodput_per_s is None
    assert found(request_goodput=1.25).goodput_per_s == 1.25


def test_a_tracebacks_last_line_names_the_failure():
    assert first_line("Traceback (most recent call last):\n  File x\nClientOSError: reset\n") == "ClientOSError: reset"
    assert first_line("\n") == "no word"


def test_a_prefix_cache_that_flatters_is_refused():
    flattered = found().model_copy(update={"cached_tokens": 400, "input_tokens": 560})
    with pytest.raises(CheckFailed, match="400 of 560 prompt tokens came from a prefix cache"):
        require_uncached(PLAIN, flattered, 129280)


@pytest.mark.parametrize("name", ["multi-turn", "tail isolation"])
def test_where_sharing_is_the_point_cached_tokens_are_only_recorded(name):
    flattered = found().model_copy(update={"cached_tokens": 400})
    require_uncached(PLAIN.model_copy(update={"name": name}), flattered, 129280)


def test_a_chat_templates_tokens_are_no_flattery():
    require_uncached(PLAIN, found().model_copy(update={"cached_tokens": 4 * 20}), None)


def test_a_vocabulary_of_bytes_makes_prompts_that_begin_alike():
    require_uncached(PLAIN, found().model_copy(update={"cached_tokens": 400}), 258)


def test_requests_that_the_load_did_not_send_are_other_traffic():
    with pytest.raises(CheckFailed, match="the engine answered 5 requests, and the load sent 4"):
        require_alone(PLAIN, found(), {"aggregated": {"requests": 5}})


def test_a_pairs_requests_are_counted_once_and_failed_ones_may_be_missing():
    require_alone(PLAIN, found(), {"prefill": {"requests": 4}, "decode": {"requests": 4}})
    require_alone(PLAIN, found(), {"prefill": {"requests": 4}, "decode": {"requests": 3}})


def test_behind_long_requests_other_traffic_cannot_be_told():
    require_alone(PLAIN.model_copy(update={"name": "tail isolation"}), found(), {"aggregated": {"requests": 9}})
