import pytest

from appliance.engines.sglang.command import command
from appliance.engines.sglang.identity import flags, mismatches, same


def reported(plan, worker) -> dict:
    """What a server reports that runs exactly as planned (types as SGLang 0.5.23 reports them)."""
    info = {"version": plan.engine.version}
    for flag, value in flags(command(plan, worker)):
        typed = True if value == "True" else int(value) if value.isdigit() else value
        info[flag.removeprefix("--").replace("-", "_")] = typed
    return info


@pytest.fixture
def plan(make_plan):
    return make_plan("pd")


def test_the_planned_server(plan):
    decode = plan.worker("decode")
    assert mismatches(plan, decode, reported(plan, decode)) == []


def test_the_other_role_on_the_port(plan):
    found = mismatches(plan, plan.worker("decode"), reported(plan, plan.worker("prefill")))
    assert "--disaggregation-mode is prefill, planned decode" in found


@pytest.mark.parametrize(
    "field, value, expected",
    [
        ("version", "0.5.17", "version is 0.5.17, planned 0.5.23"),
        ("max_total_tokens", 4096, "--max-total-tokens is 4096, planned 16384"),
        ("tp_size", 8, "--tp-size is 8, planned 1"),
        ("enable_metrics", False, "--enable-metrics is False, planned True"),
    ],
)
def test_one_difference_is_one_line(plan, field, value, expected):
    decode = plan.worker("decode")
    assert mismatches(plan, decode, reported(plan, decode) | {field: value}) == [expected]


def test_what_the_server_does_not_report_is_not_taken_for_equal(plan):
    decode = plan.worker("decode")
    info = reported(plan, decode)
    del info["max_total_tokens"]
    assert mismatches(plan, decode, info) == ["--max-total-tokens is not reported by the server, planned 16384"]


@pytest.mark.parametrize(
    "planned, value, equal",
    [
        ("0.1", 0.1, True),
        ("8", 8, True),
        ("True", True, True),
        ("8", None, False),
        ("x", 8, False),
        ("1", True, False),
        ("1 2", [1, 2], True),
    ],
)
def test_same(planned, value, equal):
    assert same(planned, value) is equal


def test_flags_with_and_without_values():
    words = ["python", "-m", "sglang.launch_server", "--a", "1", "--b", "--c=2", "--d", "x", "y"]
    assert flags(words) == [("--a", "1"), ("--b", "True"), ("--c", "2"), ("--d", "x y")]
