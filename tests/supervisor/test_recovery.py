import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from appliance.documents import ProcessState
from appliance.supervisor import session
from appliance.supervisor.recovery import recover
from appliance.supervisor.state import StateDirectory
from tests.supervisor.test_state import run_state

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def orphan():
    """A process in a session of its own, as a killed run would leave it."""
    process = subprocess.Popen(SLEEP, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def left_by_a_killed_run(plan, directory: StateDirectory, process: subprocess.Popen, created: float, **changes) -> None:
    directory.prepare()
    left = ProcessState(name="single", phase="serving", session=process.pid, created=created, port=plan.workers[0].port)
    run_state(plan, processes=[left], **changes).write(directory.state_file)


def test_what_a_killed_run_left_is_ended_and_its_scratch_removed(tmp_path, make_plan, orphan):
    directory, scratch = StateDirectory(tmp_path / "state"), tmp_path / "appliance-x"
    scratch.mkdir()
    created = psutil.Process(orphan.pid).create_time()
    left_by_a_killed_run(make_plan("single"), directory, orphan, created, scratch=str(scratch))
    assert "was killed while serving: 1 processes ended" in recover(directory)
    assert session.members(orphan.pid) == []
    assert not scratch.exists()
    assert directory.read().phase == "failed"
    assert recover(directory) is None


def test_a_stranger_that_got_the_pid_is_left_alone(tmp_path, make_plan, orphan):
    directory = StateDirectory(tmp_path / "state")
    left_by_a_killed_run(make_plan("single"), directory, orphan, created=time.time() - 1000)
    assert "0 processes ended" in recover(directory)
    assert orphan.poll() is None


def test_a_run_before_the_last_boot_left_no_process(tmp_path, make_plan, orphan):
    directory = StateDirectory(tmp_path / "state")
    created = psutil.Process(orphan.pid).create_time()
    left_by_a_killed_run(make_plan("single"), directory, orphan, created, supervisor_created=psutil.boot_time() - 100)
    recover(directory)
    assert orphan.poll() is None


def test_a_folder_that_is_no_scratch_is_not_removed(tmp_path, make_plan, orphan):
    directory, other = StateDirectory(tmp_path / "state"), tmp_path / "precious"
    other.mkdir()
    left_by_a_killed_run(make_plan("single"), directory, orphan, created=0.0, scratch=str(other))
    recover(directory)
    assert other.is_dir()


def test_a_run_that_ended_by_itself_needs_no_recovery(tmp_path, make_plan):
    directory = StateDirectory(tmp_path / "state")
    directory.prepare()
    assert recover(directory) is None
    run_state(make_plan("single"), phase="stopped").write(directory.state_file)
    assert recover(directory) is None
    assert Path(directory.state_file).exists()
