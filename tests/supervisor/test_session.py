import multiprocessing.shared_memory
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from appliance.supervisor import session
from tests.helpers.cli import wait_for

SLEEP = "import time; time.sleep(60)"
TREE = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"


@pytest.fixture
def leader():
    process = subprocess.Popen([sys.executable, "-c", TREE], start_new_session=True)
    yield process
    session.kill(process.pid)
    process.wait()


def test_members_are_leader_and_children_also_after_the_leader_has_died(leader):
    wait_for(lambda: len(session.members(leader.pid)) == 2, 5, "leader and child")
    leader.kill()
    leader.wait()
    assert len(session.members(leader.pid)) == 1


def test_kill_ends_all_of_them_and_nobody_else(leader):
    wait_for(lambda: len(session.members(leader.pid)) == 2, 5, "leader and child")
    assert session.kill(leader.pid)
    assert session.members(leader.pid) == []
    assert psutil.pid_exists(os.getpid())


def test_shared_memory_that_we_made_is_removed_once_nobody_maps_it():
    start = time.time()
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    path = f"/dev/shm/{block.name.lstrip('/')}"
    assert path in session.mapped(os.getpid())
    session.remove_shared_memory([path], created_after=start)
    assert Path(path).exists()  # still mapped by this process
    block.close()
    session.remove_shared_memory([path], created_after=time.time() + 10)
    assert Path(path).exists()  # older than the worker: somebody else's
    session.remove_shared_memory([path], created_after=start)
    assert not Path(path).exists()
    multiprocessing.resource_tracker.unregister(block._name, "shared_memory")


def test_only_files_in_shared_memory_are_ever_removed(tmp_path):
    other = tmp_path / "file"
    other.touch()
    session.remove_shared_memory([str(other), f"/dev/shm/../{other}"], created_after=0)
    assert other.exists()
