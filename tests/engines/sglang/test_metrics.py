from appliance.engines.sglang.metrics import WorkerMetrics, load_of, parse

# As SGLang 0.5.23 writes them; numbers made for this test.
PREFILL = """\
# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{engine_type="prefill",is_streaming="false",model_name="demo"} 82.0
sglang:prompt_tokens_total{engine_type="prefill",is_streaming="true",model_name="demo"} 18.0
# TYPE sglang:realtime_tokens_total counter
sglang:realtime_tokens_total{mode="prefill_compute",tp_rank="0"} 24.0
sglang:realtime_tokens_total{mode="prefill_cache",tp_rank="0"} 60.0
# TYPE sglang:kv_transfer_total_mb histogram
sglang:kv_transfer_total_mb_sum{tp_rank="0"} 0.5
sglang:kv_transfer_total_mb_bucket{le="+Inf",tp_rank="0"} 6.0
sglang:kv_transfer_total_mb_count{tp_rank="0"} 6.0
"""


def test_counters_are_summed_over_labels_and_modes_kept_apart():
    found = parse(PREFILL)
    assert found.prompt_tokens == 100
    assert found.prefilled_tokens == 24
    assert (found.kv_transfers, found.kv_bytes) == (6, 512 * 1024)


def test_what_was_not_counted_yet_is_zero():
    assert parse("") == WorkerMetrics(0, 0, 0, 0, 0, 0)


def test_a_load_is_what_the_gauges_say_now_and_the_counters_said_since_the_start():
    text = PREFILL + (
        "# TYPE sglang:num_running_reqs gauge\n"
        'sglang:num_running_reqs{tp_rank="0"} 3.0\nsglang:num_running_reqs{tp_rank="1"} 3.0\n'
        "# TYPE sglang:num_queue_reqs gauge\nsglang:num_queue_reqs 2.0\n"
        "# TYPE sglang:token_usage gauge\nsglang:token_usage 0.25\n"
    )
    found = load_of("prefill", text)
    assert (found.running, found.queued, found.kv_use) == (3, {"num_queue_reqs": 2}, 0.25)
    assert (found.prompt_tokens, found.kv_transfers, found.kv_bytes) == (100, 6, 512 * 1024)
