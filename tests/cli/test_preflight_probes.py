"""`appliance preflight --probe`: real probes of this machine, kept and compared; and the static part over ssh."""

import json
import os

import pytest

from appliance.cli.preflight_run import exit_code
from appliance.documents import Findings
from appliance.documents.probes import ProbeRecord, ProbeResult
from tests.helpers.cli import appliance, refused
from tests.helpers.sshd import Sshd, missing


def probe(state_dir, *words: object) -> Findings:
    done = appliance("preflight", "--state-dir", state_dir, "--patience", "6", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return Findings.parse(done.stdout, "stdout")


def test_a_run_is_kept_and_a_later_one_compared_with_it(tmp_path):
    only = ["--only-probe", "memory", "--only", "probe-slower-than-before"]
    first = probe(tmp_path, *only)
    assert first.results[0].status == "not checked" and "earlier" in first.results[0].reason
    assert [result.probe for result in first.probes.results] == ["memory"]
    last = tmp_path / "probes/last.json"
    kept = ProbeRecord.read(last)
    assert kept == first.probes and len(list((tmp_path / "probes").iterdir())) == 2

    faster = json.loads(last.read_text())
    for measure in faster["results"][0]["measures"]:
        measure["value"] *= 100
    last.write_text(json.dumps(faster))
    second = probe(tmp_path, *only)
    (result,) = second.results
    assert result.status == "finding" and result.findings[0].severity == "warning"
    assert "memory: CPUs of node" in result.findings[0].evidence

    third = probe(tmp_path, *only, "--against", tmp_path / "probes/last.json")
    assert third.results[0].status == "ok"


def test_a_plan_and_its_model_are_probed(tmp_path, make_plan):
    plan = make_plan("pd")
    plan.write(tmp_path / "plan.json")
    only = [word for name in ("ports", "disk", "sandbox") for word in ("--only-probe", name)]
    rules = [word for name in ("probe-port-refused", "probe-disk-slow", "probe-hung") for word in ("--only", name)]
    findings = probe(tmp_path, "--plan", tmp_path / "plan.json", *only, *rules)
    assert {result.status for result in findings.results} == {"ok"}
    assert {result.probe: result.status for result in findings.probes.results} == dict.fromkeys(
        ["ports", "disk", "sandbox"], "measured"
    )
    assert findings.probes.plan_identity == plan.identity()


def test_a_planned_port_in_use_is_found_by_binding_it(tmp_path, make_plan):
    import socket

    plan = make_plan("single")
    plan.write(tmp_path / "plan.json")
    with socket.socket() as held:
        held.bind(("127.0.0.1", plan.workers[0].port))
        held.listen()
        words = ["--plan", tmp_path / "plan.json", "--only-probe", "ports", "--only", "probe-port-refused"]
        done = appliance("preflight", "--state-dir", tmp_path, "--patience", "6", *words)
    assert done.returncode == 1
    assert f"{plan.workers[0].port} (single.port) is in use by" in done.stdout
    assert f"(pid {os.getpid()})" in done.stdout


def test_an_incomplete_probe_is_exit_code_3_unless_something_graver_was_found():
    failed = ProbeResult(probe="peers", status="failed", reason="r", device="a GPU", seconds=1, limit_s=2)
    record = ProbeRecord(date="2026-12-01", results=[failed])
    findings = Findings(date="2026-12-01", appliance_version="0", results=[], probes=record)
    assert exit_code(findings) == 3
    assert exit_code(findings.model_copy(update={"probes": None})) == 0


def test_a_last_run_that_cannot_be_read_is_said_and_passed_over(tmp_path):
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes/last.json").write_text("half a rec")
    words = ["--only-probe", "memory", "--only", "probe-node-memory", "--patience", "6"]
    done = appliance("preflight", "--state-dir", tmp_path, *words)
    assert done.returncode == 0 and "nothing to compare with" in done.stderr


def test_bad_words_about_probes_are_refused(tmp_path):
    assert "no probe is called 'no-such'" in refused("preflight", "--only-probe", "no-such", "--state-dir", tmp_path)
    (tmp_path / "old.json").write_text("{}")
    words = ["--only-probe", "memory", "--state-dir", tmp_path, "--against", tmp_path / "old.json"]
    assert "expected 'ProbeRecord'" in refused("preflight", *words)


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_another_machine_is_checked_over_ssh(tmp_path, monkeypatch):
    server = Sshd(tmp_path / "sshd")
    server.start()
    try:
        monkeypatch.setenv("PATH", f"{server.client()}:{os.environ['PATH']}")
        done = appliance(
            "preflight", "--host", server.ask, "--only", "cpus-offline", "--only", "numa-balancing-on", "--json"
        )
        assert done.returncode == 0, done.stderr
        findings = Findings.parse(done.stdout, "stdout")
        assert findings.machine == os.uname().nodename
        assert {result.rule: result.status for result in findings.results}["cpus-offline"] in ("ok", "finding")
        assert len(server.calls()) == 1
        everything = Findings.parse(appliance("preflight", "--host", server.ask, "--json").stdout, "stdout")
        assert everything.count("not checked") > 0 and everything.count("ok") > 0
    finally:
        server.stop()


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_machine_that_cannot_be_reached_is_exit_code_3(tmp_path, monkeypatch):
    server = Sshd(tmp_path / "sshd")
    monkeypatch.setenv("PATH", f"{server.client()}:{os.environ['PATH']}")
    done = appliance("preflight", "--host", server.ask)
    assert done.returncode == 3 and "Traceback" not in done.stderr
