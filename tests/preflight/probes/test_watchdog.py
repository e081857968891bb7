"""A probe that hangs, crashes or says nothing is reported, and nothing of it is left."""

import os
import sys
import time

import psutil
import pytest

from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import LiveProbe, Subject
from tests.helpers.healthy import machine

SUBJECT = Subject(machine())
HEAD = """\
from appliance.preflight.probes.child import run
import os, signal, subprocess, sys, time
def main(spec, teller):
"""


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """Make a probe whose child's `main` has the given lines."""

    def make(*lines: str, limit_s: float = 20, **fields) -> LiveProbe:
        body = "".join(f"    {line}\n" for line in lines)
        (tmp_path / "made_up.py").write_text(f"{HEAD}{body}\nrun(main)\n")
        path = os.pathsep.join([str(tmp_path), *sys.path])
        fields |= {
            "specify": lambda subject: {"a": 1},
            "environment": lambda subject: os.environ | {"PYTHONPATH": path},
        }
        return LiveProbe("made-up", "Made up", "made_up", limit_s, lambda subject: None, **fields)

    return make


def test_numbers_and_facts_come_back(probe):
    made = probe('teller.measure("x", 1 / 3, "GB/s")', 'teller.fact("spec", str(spec))', 'print("noise of a library")')
    result = watchdog.run(made, SUBJECT)
    assert (result.status, result.device) == ("measured", "cpu")
    assert [(m.name, m.value, m.unit) for m in result.measures] == [("x", 0.3333, "GB/s")]
    assert result.facts == {"spec": "{'a': 1}"}


def test_what_hangs_is_killed_with_its_children_and_said_to_have_hung(probe):
    made = probe(
        'child = subprocess.Popen(["sleep", "300"])',
        'teller.fact("pids", f"{os.getpid()} {child.pid}")',
        'teller.doing("GPU0 -> GPU1 read")',
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "time.sleep(300)",
        limit_s=1.5,
    )
    begun = time.monotonic()
    result = watchdog.run(made, SUBJECT)
    assert time.monotonic() - begun < 10
    assert (result.status, result.reason) == ("hung", "killed after 1.5 s while GPU0 -> GPU1 read")
    time.sleep(0.2)
    for pid in map(int, result.facts["pids"].split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_what_was_measured_before_the_hang_is_kept(probe):
    made = probe('teller.measure("first", 2, "us")', "time.sleep(300)", limit_s=1.5)
    result = watchdog.run(made, SUBJECT)
    assert result.status == "hung" and [m.name for m in result.measures] == ["first"]


def test_a_crash_is_reported_with_its_last_words(probe):
    made = probe(
        'teller.doing("loading")', 'sys.stderr.write("driver is angry\\n")', "sys.stderr.flush()", "os.abort()"
    )
    result = watchdog.run(made, SUBJECT)
    assert result.status == "failed"
    assert result.reason == "ended with -6 while loading: driver is angry"


def test_an_exception_is_a_reason_in_one_line(probe):
    result = watchdog.run(probe('raise RuntimeError("cuInit:\\nno device")'), SUBJECT)
    assert (result.status, result.reason) == ("failed", "RuntimeError: cuInit: no device")


def test_a_process_that_does_not_read_its_specification_is_reported(probe, tmp_path):
    made = probe("pass")
    (tmp_path / "made_up.py").write_text("raise SystemExit(3)\n")
    result = watchdog.run(made, SUBJECT)
    assert result.status == "failed" and "ended with 3" in result.reason


def test_what_a_killed_probe_would_leave_is_tidied(probe, tmp_path):
    left = tmp_path / "left"
    made = probe("time.sleep(300)", limit_s=1, tidy=lambda specification: left.unlink())
    left.touch()
    assert watchdog.run(made, SUBJECT).status == "hung"
    assert not left.exists()


def test_patience_stretches_the_limit(probe):
    result = watchdog.run(probe("time.sleep(0.5)", limit_s=0.3), Subject(machine(), patience=50))
    assert (result.status, result.limit_s) == ("measured", 15.0)


def test_a_probe_that_does_not_apply_starts_nothing(probe):
    made = probe("raise AssertionError")
    skipped = LiveProbe(made.name, made.title, "no.such.module", 1, lambda subject: "no GPU", made.specify)
    result = watchdog.run(skipped, SUBJECT)
    assert (result.status, result.reason, result.seconds) == ("does not apply", "no GPU", 0.0)
