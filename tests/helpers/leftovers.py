"""What the runs of a test could leave behind, told apart from other runs on the same machine."""

import os
import socket
from pathlib import Path

import psutil

from appliance.documents import RunState
from appliance.supervisor import session
from appliance.supervisor.state import supervisor_alive

ENGINE_NAMES = ("sglang", "smg", "appliance up")


class Leftovers:
    """Look at the machine before a test; `found` says what the runs below `folder` left since.

    `temporary` is the test's own TMPDIR. Shared memory is blamed on the test if no other run was on the machine
    before or after it: its files do not say whose they are.
    """

    def __init__(self, folder: Path, temporary: Path):
        self._folder = folder
        self._temporary = temporary
        self._alone = not engines()
        self._shared_before = shared_memory()

    def found(self) -> list[str]:
        """What is left, one line each."""
        left = [f"temporary {path}" for path in self._temporary.iterdir()]
        states = [RunState.read(path) for path in self._folder.rglob("state.json")]
        if self._alone and not engines():
            left += [f"shared memory {path}" for path in shared_memory() - self._shared_before]
        for state in states:
            if supervisor_alive(state):
                left.append(f"supervisor {state.supervisor_pid}")
            sessions = [process.session for process in state.processes if process.session]
            left += [f"process {p.pid} {p.name()}" for leader in sessions for p in session.members(leader)]
            left += [f"port {port} ({holder})" for holder, port in state.plan.listeners() if is_open(port)]
        return left


def engines() -> list[int]:
    """The pids of engines, routers and supervisors on this machine."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(name in words for name in ENGINE_NAMES):
            found.append(process.pid)
    return found


def shared_memory() -> set[str]:
    """The files in /dev/shm."""
    return {str(path) for path in Path("/dev/shm").iterdir()}


def is_open(port: int) -> bool:
    """Whether somebody answers on `port` of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
