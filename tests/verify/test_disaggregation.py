from dataclasses import replace

from appliance.engines.sglang.metrics import WorkerMetrics
from appliance.verify.disaggregation import check_disaggregation

NONE = WorkerMetrics(0, 0, 0, 0, 0, 0)
BEFORE = {"prefill": NONE, "decode": NONE}
GOOD = {
    "prefill": replace(NONE, prompt_tokens=100, prefilled_tokens=90, kv_transfers=10, kv_bytes=4096),
    "decode": replace(NONE, prompt_tokens=100, generation_tokens=200),
}


def failed(plan, after, requests=10) -> list[str]:
    return [check.name for check in check_disaggregation(plan, BEFORE, after, requests) if not check.passed]


def test_a_pair_that_disaggregates(make_plan):
    assert failed(make_plan("pd"), GOOD) == []


def test_decode_that_prefills(make_plan):
    after = GOOD | {"decode": replace(GOOD["decode"], prefilled_tokens=1)}
    assert failed(make_plan("pd"), after) == ["decode did not prefill"]


def test_counters_that_count_nothing_prove_nothing(make_plan):
    assert failed(make_plan("pd"), BEFORE) == ["KV cache crossed", "decode did not prefill"]


def test_fewer_transfers_than_requests(make_plan):
    assert failed(make_plan("pd"), GOOD, requests=11) == ["KV cache crossed"]


def test_other_topologies_have_nothing_to_check(make_plan):
    assert check_disaggregation(make_plan("single"), BEFORE, GOOD, 10) == []
