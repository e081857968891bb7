import json
import subprocess

import pytest

from appliance.documents import Workload
from appliance.engines.sglang.load import arguments, why

PLAIN = Workload(name="plain", input_tokens=128, output_tokens=32, concurrency=2, requests=8)


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


@pytest.mark.parametrize("name", ["plain", "tail isolation", "multi-turn", "structured output"])
def test_tokens_are_counted_by_usage(name):
    words = arguments(PLAIN.model_copy(update={"name": name, "turns": 4}))
    assert json.loads(value(words, "--extra-request-body"))["stream_options"] == {"include_usage": True}


def test_the_load_is_a_concurrency_or_a_rate():
    assert value(arguments(PLAIN), "--max-concurrency") == "2"
    by_rate = arguments(PLAIN.model_copy(update={"concurrency": None, "request_rate": 1.5}))
    assert value(by_rate, "--request-rate") == "1.5" and "--max-concurrency" not in by_rate


def test_conversations_are_requests_by_turns_and_share_a_prefix():
    words = arguments(PLAIN.model_copy(update={"name": "multi-turn", "turns": 4}))
    assert (value(words, "--gsp-num-groups"), value(words, "--gsp-num-turns")) == ("2", "4")
    assert int(value(words, "--gsp-system-prompt-len")) + int(value(words, "--gsp-question-len")) == 128


def test_structured_output_is_bound_by_a_schema():
    words = arguments(PLAIN.model_copy(update={"name": "structured output"}))
    assert json.loads(value(words, "--extra-request-body"))["response_format"]["type"] == "json_schema"


def test_where_no_request_came_to_its_end_that_is_said():
    # The end of what sglang.benchmark.serving 0.5.23 wrote on an H200, where every prompt was longer than the context.
    broken = "    slices_having_nans = ...\nIndexError: index -1 is out of bounds for axis 0 with size 0\n"
    assert "not one request" in why(subprocess.CompletedProcess([], 1, "", broken))
    assert "ended with 3: oops" in why(subprocess.CompletedProcess([], 3, "oops", ""))
