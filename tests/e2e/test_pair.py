"""The pair: right answers, the planned identity, and what a client sees when a worker dies."""

import os
import signal
import time

import httpx
import psutil
import pytest

from appliance.documents import Verification
from appliance.supervisor import session
from tests.helpers.cli import appliance, state, status, wait_for

LONG = {"model": "demo", "prompt": "Go on.", "max_tokens": 4000, "temperature": 0, "ignore_eos": True, "stream": True}


def stream_until_it_breaks(url: str, on_first: callable) -> str:
    """Ask for a very long answer, call `on_first` once it flows, and return how it ended, in words."""
    lines, flowing = 0, False
    try:
        with httpx.stream("POST", f"{url}/v1/completions", json=LONG, timeout=30, trust_env=False) as response:
            for line in response.iter_lines():
                if '"error"' in line:
                    return f"error in the stream after {lines} lines"
                lines += bool(line)
                if lines >= 20 and not flowing:
                    flowing = True
                    on_first()
        return f"ended after {lines} lines"
    except httpx.HTTPError as error:
        return f"{type(error).__name__} after {lines} lines"


def test_a_pair_answers_as_planned_and_its_death_is_seen_by_client_and_status(run, reference):
    pair = run("pd")
    assert status(pair.state_dir)["phase"] == "serving"
    assert appliance("status", "--state-dir", pair.state_dir).returncode == 0

    identity = appliance("verify", "identity", pair.plan_file, "--json")
    assert identity.returncode == 0, identity.stdout
    verified = Verification.parse(identity.stdout, where="stdout")
    assert verified.holds() and verified.plan_identity == pair.plan().identity()
    assert [check.name for check in verified.checks] == ["identity of prefill", "identity of decode"]
    golden = pair.golden(reference)
    assert golden.returncode == 0, golden.stdout

    second = appliance("up", pair.plan_file, "--state-dir", pair.state_dir)
    assert second.returncode == 1
    assert "is held by process" in second.stderr and "decode on port" in second.stderr

    killed_at = []

    def kill_decode():
        os.kill(pair.session_of("decode"), signal.SIGKILL)
        killed_at.append(time.monotonic())

    ending = stream_until_it_breaks(pair.plan().endpoint(), kill_decode)
    assert "error in the stream" in ending or "Error" in ending, ending
    wait_for(
        lambda: process_state(pair, "decode")["last_error"],
        killed_at[0] + 5 - time.monotonic(),
        "the state shows the death",
    )
    wait_for(lambda: state(pair.state_dir)["phase"] == "failed", 30, "the pair went down with it")
    shown = appliance("status", "--state-dir", pair.state_dir)
    assert shown.returncode == 1
    assert "decode was ended by SIGKILL; its last log lines:" in shown.stdout


def process_state(run, name: str) -> dict:
    return next(p for p in state(run.state_dir)["processes"] if p["name"] == name)


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_a_worker_that_lost_its_scheduler_is_started_again_and_answers_as_before(run, reference, name):
    pair = run("pd", on_worker_exit="restart")
    leader = pair.session_of(name)
    scheduler = next(p for p in session.members(leader) if p.cmdline()[:1] == ["sglang::scheduler"])
    scheduler.kill()
    wait_for(lambda: process_state(pair, name)["last_error"], 5, "the loss is reported")
    wait_for(lambda: process_state(pair, name)["phase"] == "serving", 90, "it serves again")
    assert process_state(pair, name)["restarts"] == 1
    assert process_state(pair, "router")["restarts"] == 0
    assert not psutil.pid_exists(leader)
    wait_for(lambda: completes(pair), 60, "the router has it again")
    golden = pair.golden(reference)
    assert golden.returncode == 0, golden.stdout
    assert appliance("status", "--state-dir", pair.state_dir).returncode == 0


def completes(run) -> bool:
    """Whether a short completion comes back through the front door."""
    body = {"model": "demo", "prompt": "x", "max_tokens": 1}
    try:
        response = httpx.post(f"{run.plan().endpoint()}/v1/completions", json=body, timeout=20, trust_env=False)
    except httpx.HTTPError:
        return False
    return response.status_code == 200
