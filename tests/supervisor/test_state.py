import os
import subprocess
from pathlib import Path

import psutil
import pytest

from appliance.documents import ProcessState, RunState
from appliance.errors import CheckFailed, InputError
from appliance.supervisor.state import StateDirectory, is_alive


def run_state(plan, **changes) -> RunState:
    state = RunState(
        phase="serving",
        supervisor_pid=os.getpid(),
        supervisor_created=psutil.Process().create_time(),
        started="2026-11-30T22:00:00+00:00",
        scratch="/tmp/appliance-none",
        endpoint=plan.endpoint(),
        plan=plan,
        processes=[ProcessState(name="single", phase="serving", port=plan.workers[0].port)],
    )
    return state.model_copy(update=changes)


def test_one_run_holds_the_folder_and_the_second_is_told_who(tmp_path, make_plan):
    plan = make_plan("single")
    first = StateDirectory(tmp_path / "state")
    first.prepare()
    first.acquire()
    run_state(plan).write(first.state_file)
    second = StateDirectory(tmp_path / "state")
    with pytest.raises(CheckFailed) as error:
        second.acquire()
    assert f"held by process {os.getpid()}, serving since 2026-11-30T22:00:00+00:00" in str(error.value)
    assert f"single on port {plan.workers[0].port}" in str(error.value)
    first.release()
    second.acquire()
    second.release()


def test_a_folder_that_cannot_be_made():
    with pytest.raises(InputError, match=r"state directory /proc/no: cannot be written"):
        StateDirectory(Path("/proc/no")).prepare()


def test_a_spoilt_state_is_not_taken_for_none(tmp_path):
    directory = StateDirectory(tmp_path)
    directory.prepare()
    assert directory.read() is None
    directory.state_file.write_text('{"kind": "RunState"')
    with pytest.raises(InputError, match=r"state\.json: not JSON"):
        directory.read()


def test_a_state_of_somebody_else_is_not_taken_for_the_holders(tmp_path, make_plan):
    holder = StateDirectory(tmp_path)
    holder.prepare()
    holder.acquire()
    run_state(make_plan("single"), supervisor_pid=999999, phase="stopped").write(holder.state_file)
    with pytest.raises(CheckFailed, match=f"is held by process {os.getpid()}, which is just starting"):
        StateDirectory(tmp_path).acquire()
    assert StateDirectory(tmp_path).holder_pid() == os.getpid()
    holder.release()
    assert StateDirectory(tmp_path).holder_pid() is None


def test_the_folder_is_its_owners_alone_and_a_failed_start_removes_all_it_made(tmp_path):
    directory = StateDirectory(tmp_path / "a/b/c")
    directory.prepare()
    assert directory.path.stat().st_mode & 0o777 == 0o700
    directory.discard_if_new()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_is_never_discarded(tmp_path):
    (tmp_path / "mine").write_text("x")
    directory = StateDirectory(tmp_path)
    directory.prepare()
    directory.discard_if_new()
    assert (tmp_path / "mine").exists()


def test_a_pid_that_was_given_to_another_process_is_not_alive():
    me = psutil.Process()
    assert is_alive(me.pid, me.create_time())
    assert not is_alive(me.pid, me.create_time() - 100)
    assert not is_alive(2**22 - 1, 0.0)


@pytest.fixture(params=["full", "read-only"])
def small_mount(tmp_path, request):
    """A file system that is full, or read-only, as root meets it too."""
    place = tmp_path / "mount"
    place.mkdir()
    options = "size=1m" if request.param == "full" else "size=1m,ro"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("mounting a file system needs root")
    yield request.param, place
    subprocess.run(["umount", place], check=True)


def test_a_full_or_read_only_folder_is_refused_and_left_as_it_was(small_mount):
    kind, place = small_mount
    expected = {
        "full": "1024 KiB free; expected 64 MiB for logs|free; expected 64 MiB for logs",
        "read-only": r"cannot be written \(Read-only file system\)",
    }
    with pytest.raises(InputError, match=expected[kind]):
        StateDirectory(place / "state").prepare()
    assert list(place.iterdir()) == []
