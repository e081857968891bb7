from appliance.bench.serve import cell

# Fields of a result line of sglang.benchmark.serving 0.5.23; numbers made for this test.
RESULT = {"completed": 11, "total_output_tokens": 352, "duration": 2.5, "output_throughput": 140.8} | {
    f"{statistic}_{name}_ms": float(number)
    for number, statistic in enumerate(("mean", "median", "p90", "p99"))
    for name in ("ttft", "tpot", "itl")
}


def test_a_cell_counts_what_was_asked_what_came_and_the_servers_own_prompt_tokens():
    found = cell(RESULT, concurrency=2, requests=12, prompt_tokens=1600)
    assert (found.requests, found.completed, found.input_tokens, found.output_tokens) == (12, 11, 1600, 352)
    assert found.ttft_ms.model_dump() == {"mean": 0.0, "p50": 1.0, "p90": 2.0, "p99": 3.0}
