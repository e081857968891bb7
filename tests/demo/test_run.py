import os

from appliance.supervisor.state import StateDirectory
from tests.helpers.cli import appliance


def test_a_demo_leaves_a_run_alone_that_it_did_not_start(tmp_path):
    other = StateDirectory(tmp_path / "state" / "reference")  # held by this very process, which a SIGTERM would end
    other.prepare()
    other.acquire()
    done = appliance("demo", "--state-dir", tmp_path / "state", "--cache-dir", tmp_path / "cache", "--base-port", 28000)
    other.release()
    assert done.returncode == 1
    assert f"reference is held by process {os.getpid()}, which is just starting" in done.stderr
