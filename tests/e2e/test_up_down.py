"""Starting, stopping, killing and recovering a run; one aggregated server is enough for that."""

import os
import signal
import time

import psutil
import pytest

from appliance.supervisor import session
from tests.helpers.cli import appliance, running, state, status, wait_for

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.fixture
def single(make_plan, tmp_path):
    """A plan of one aggregated worker, and a state directory."""
    plan_file = tmp_path / "plan.json"
    make_plan("single").write(plan_file)
    return plan_file, tmp_path / "state"


def is_serving(state_dir) -> bool:
    return state(state_dir).get("phase") == "serving"


def test_a_run_that_was_killed_is_recovered_from_and_sigterm_leaves_nothing(single):
    plan_file, state_dir = single
    with running("up", plan_file, "--state-dir", state_dir) as first:
        wait_for(lambda: is_serving(state_dir), 90, "serving")
        leader = state(state_dir)["processes"][0]["session"]
        first.send_signal(signal.SIGKILL)
        first.wait()
    wait_for(lambda: not session.members(leader), 5, "its worker does not outlive it")
    assert status(state_dir)["phase"] == "killed"

    with running("up", plan_file, "--state-dir", state_dir) as second:
        wait_for(lambda: state(state_dir)["supervisor_pid"] == second.pid, 20, "the second run has the state")
        wait_for(lambda: is_serving(state_dir), 90, "serving again")
        second.send_signal(signal.SIGTERM)
        assert second.wait(30) == 0
        output = second.stdout.read()
    assert f"supervisor {first.pid} was killed while serving" in output
    assert state(state_dir)["phase"] == "stopped"


def test_down_cleans_up_after_a_run_that_was_killed(single):
    plan_file, state_dir = single
    with running("up", plan_file, "--state-dir", state_dir) as up:
        wait_for(lambda: is_serving(state_dir), 90, "serving")
        up.send_signal(signal.SIGKILL)
        up.wait()
    assert "was killed while serving" in appliance("down", "--state-dir", state_dir).stdout
    assert appliance("down", "--state-dir", state_dir).stdout == f"nothing is running in {state_dir}\n"


def test_an_interrupt_while_starting_leaves_nothing(single):
    plan_file, state_dir = single
    with running("up", plan_file, "--state-dir", state_dir) as up:
        wait_for(lambda: state(state_dir).get("processes"), 20, "starting")
        leader = state(state_dir)["processes"][0]["session"]
        time.sleep(5)  # in the middle of its imports, with children on the way
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0
    assert session.members(leader) == []
    assert state(state_dir)["phase"] == "stopped"


def test_an_interrupt_of_a_detached_start_stops_it(single):
    plan_file, state_dir = single
    with running("up", plan_file, "--state-dir", state_dir, "--detach") as up:
        wait_for(lambda: state(state_dir).get("processes"), 20, "starting")
        supervisor = state(state_dir)["supervisor_pid"]
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 130
    assert not psutil.pid_exists(supervisor)
    assert state(state_dir)["phase"] == "stopped"


def test_a_worker_that_cannot_start_is_reported_with_its_last_log_lines(make_plan, tmp_path):
    plan = make_plan("single")
    worker = plan.workers[0].model_copy(update={"args": [*plan.workers[0].args, "--no-such-argument"]})
    plan.model_copy(update={"workers": [worker]}).write(tmp_path / "plan.json")
    done = appliance("up", tmp_path / "plan.json", "--state-dir", tmp_path / "state")
    assert done.returncode == 1
    assert "error: single ended with exit code 2; its last log lines:" in done.stderr
    assert "unrecognized arguments: --no-such-argument" in done.stderr
    assert "Traceback" not in done.stderr


def test_restarts_are_counted_and_end(make_plan, tmp_path):
    plan = make_plan("single", on_worker_exit="restart", max_restarts=1)
    worker = plan.workers[0].model_copy(update={"args": ["--no-such-argument"]})
    plan.model_copy(update={"workers": [worker]}).write(tmp_path / "plan.json")
    done = appliance("up", tmp_path / "plan.json", "--state-dir", tmp_path / "state")
    assert done.returncode == 1
    assert "error: single failed after 1 restarts, as many as the plan allows" in done.stderr


def test_a_stopped_server_is_noticed(single):
    """SIGSTOP stands for a hang: the process is there, its port is open, and nothing answers."""
    plan_file, state_dir = single
    with running("up", plan_file, "--state-dir", state_dir) as up:
        wait_for(lambda: is_serving(state_dir), 90, "serving")
        leader = state(state_dir)["processes"][0]["session"]
        for process in session.members(leader):
            os.kill(process.pid, signal.SIGSTOP)
        assert not status(state_dir)["processes"][0]["answers"]
        assert up.wait(150) == 1
        assert "single did not answer 2 times in a row" in up.stdout.read()
