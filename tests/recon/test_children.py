import signal
import subprocess
import sys
import time

import psutil
import pytest

from appliance.recon.children import run

HANGS = "import subprocess, sys, time; subprocess.Popen(['sleep', '987654']); time.sleep(60)"


def sleepers() -> list[psutil.Process]:
    """The sleeps that these tests' children start."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "987654"]]


def test_output_and_exit_code():
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert run([sys.executable, "-c", code], 30) == (3, "out\n", "err\n")


def test_a_child_that_hangs_is_ended_with_its_children():
    with pytest.raises(TimeoutError, match="not back within 0.5 s"):
        run([sys.executable, "-c", HANGS], 0.5)
    time.sleep(0.2)
    assert sleepers() == []


def test_a_command_that_is_not_there_cannot_be_run():
    with pytest.raises(OSError):
        run(["/no/such/command"], 1)


def test_an_interrupted_program_leaves_no_child():
    code = (
        "import sys; from appliance.recon.concurrency import *; from appliance.recon.children import run;"
        f"side_by_side({{'x': Probe(lambda: run([sys.executable, '-c', {HANGS!r}], 60), 60)}})"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not sleepers():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    program.wait(10)
    time.sleep(0.2)
    assert sleepers() == []
