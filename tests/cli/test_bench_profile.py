"""`appliance bench profile` as a user calls it, on saved files and with what it refuses."""

import json

import pytest

from appliance.documents import ProfileReport
from tests.documents.test_documents import plan_data
from tests.helpers.cli import appliance, refused
from tests.helpers.traces import SPARSE_DECODE, decode_step, trace, write_trace


@pytest.fixture
def saved(tmp_path):
    return write_trace(tmp_path / "step.trace.json.gz", trace(decode_step()))


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_data()))
    return path


def test_a_saved_trace_names_what_leaves_the_gpu_empty_and_is_labelled_as_simulated(saved, tmp_path):
    done = appliance("bench", "profile", "--from", saved, "--output", tmp_path / "report.json")
    assert done.returncode == 0, done.stderr
    assert f"LEAVES THE GPU EMPTY  {SPARSE_DECODE}: 64 blocks on 188 SMs, 60.0% of the time" in done.stdout
    assert "SIMULATED" in done.stdout and "launch-bound" in done.stdout and "communication 10.0%" in done.stdout
    report = ProfileReport.read(tmp_path / "report.json")
    assert report.simulated and report.source == "saved files" and report.experts is None


def test_a_saved_report_is_shown_and_given_back_as_json(saved, tmp_path):
    report = tmp_path / "report.json"
    given = appliance("bench", "profile", "--from", saved, "--output", report, "--json")
    assert json.loads(given.stdout) == json.loads(report.read_text())
    again = appliance("bench", "profile", "--from", report, "--json")
    assert again.returncode == 0 and json.loads(again.stdout) == json.loads(report.read_text())


def test_bad_input_is_one_line(saved, plan, tmp_path):
    saved.write_bytes(saved.read_bytes()[:-20])
    assert "cut short" in refused("bench", "profile", "--from", saved)
    assert "no such file" in refused("bench", "profile", "--from", tmp_path / "absent.json.gz")
    assert "no traceEvents in it" in refused("bench", "profile", "--from", plan)
    assert "--ep places recorded experts" in refused("bench", "profile", "--from", plan, "--ep", "4")
    assert "--worker prefill: expected one that decodes: decode" in refused(
        "bench", "profile", plan, "--worker", "prefill"
    )
    assert "expected it in the worker's args in the plan" in refused("bench", "profile", plan, "--experts")


@pytest.mark.parametrize("words", [[], ["plan.json", "--from", "x"], ["--from", "x", "--worker", "decode"]])
def test_bad_usage_says_what_was_expected(words):
    done = appliance("bench", "profile", *words)
    assert done.returncode == 2 and "expected" in done.stderr and "Traceback" not in done.stderr


def test_a_plan_that_does_not_run_is_not_profiled(plan):
    done = appliance("bench", "profile", plan)
    assert done.returncode == 1 and done.stdout == ""
    assert "30011/server_info: no answer" in done.stderr.splitlines()[-1]
