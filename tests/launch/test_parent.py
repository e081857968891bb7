import os
import signal
import subprocess
import sys

from tests.helpers.cli import wait_for

CHILD = """
import os, sys, time
from appliance.launch.parent import die_with_parent
assert die_with_parent(os.getppid())
assert not die_with_parent(1) or os.getppid() == 1
os.execv(sys.executable, [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(60)"])
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def test_what_the_child_became_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert os.path.exists(f"/proc/{child}")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: gone(child), 10, "the end of the child")


def gone(pid: int) -> bool:
    """Whether a process has ended (nobody may have waited for it yet)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
