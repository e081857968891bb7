import json
import signal
import subprocess
from pathlib import Path

import pytest

from appliance.documents import RunRecord
from tests.helpers.cli import appliance, running, state, wait_for
from tests.helpers.ports import free_range

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def demo(tmp_path, *options):
    state_dir = tmp_path / "state"
    words = ["--state-dir", state_dir, "--cache-dir", tmp_path / "cache", "--base-port", free_range().base, *options]
    done = appliance("demo", *words, timeout=400)
    assert done.returncode == 0, done.stderr
    return done, state_dir


@pytest.mark.parametrize("topology", ["pd", "replicas", "single"])
def test_the_demo_checks_measures_reports_and_stops(topology, tmp_path):
    done, state_dir = demo(tmp_path, "--topology", topology)
    record = RunRecord.read(state_dir / "record.json")
    names = [check.name for check in record.checks]
    assert all(check.passed for check in record.checks)
    assert {"golden prompts, one by one", "golden prompts, all at once"} <= set(names)
    assert ("decode did not prefill" in names) == (topology == "pd")
    assert [cell.workload.concurrency for cell in record.cells] == [1, 2, 4]
    for cell in record.cells:
        (measured,) = cell.repetitions
        assert measured.completed == measured.requests == cell.workload.requests
        assert measured.output_tokens == 32 * measured.requests
        assert measured.input_tokens >= 128 * measured.requests
        assert 0 < measured.tpot_ms.p50 <= measured.tpot_ms.p99
    assert "tok/s out" in done.stdout
    assert record.plan_identity in (state_dir / "report.md").read_text()


def test_kept_the_demo_serves_and_its_curl_line_works(tmp_path):
    done, state_dir = demo(tmp_path, "--topology", "single", "--keep", "--json")
    try:
        assert json.loads(done.stdout)["kind"] == "RunRecord"
        line = kept_curl_line(state_dir)
        answer = subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout
        assert json.loads(answer)["usage"]["completion_tokens"] == 16
        again = appliance("demo", "--state-dir", state_dir)
        assert again.returncode == 1
        assert f"state directory {state_dir} is held by process" in again.stderr
    finally:
        assert appliance("down", "--state-dir", state_dir).stdout == "stopped single\n"


def kept_curl_line(state_dir: Path) -> str:
    """The line that the demo prints for people, made from the record that it left."""
    from appliance.cli.demo_output import curl_line

    return curl_line(RunRecord.read(state_dir / "record.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_what_it_started(tmp_path, number):
    state_dir = tmp_path / "state"
    words = ["--state-dir", state_dir, "--cache-dir", tmp_path / "cache", "--base-port", free_range().base]
    with running("demo", *words) as demo:
        wait_for(lambda: state(state_dir / "reference").get("processes"), 30, "the reference is starting")
        demo.send_signal(number)
        assert demo.wait(30) == 130
        assert "Traceback" not in demo.stdout.read()
    assert state(state_dir / "reference")["phase"] == "stopped"
