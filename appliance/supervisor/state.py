"""The state directory of a run: who holds it, what runs, where the logs are."""

import fcntl
import os
import shutil
from pathlib import Path

import psutil

from appliance.documents import RunState
from appliance.errors import CheckFailed, InputError

FREE_BYTES_NEEDED = 64 * 1024 * 1024
"""Room for the logs of a run (log.py keeps each below 4 MiB) and its records."""


class StateDirectory:
    """A folder that one run holds at a time. Creates it. Raises InputError if it cannot be used."""

    def __init__(self, path: Path):
        self.path = path
        self.state_file = path / "state.json"
        self.logs = path / "logs"
        self.supervisor_log = self.log_of("supervisor")
        self._lock: int | None = None
        self._is_new = False

    def prepare(self) -> None:
        """Create the folder and check that a run fits into it. Raises InputError."""
        self._is_new = not self.path.exists()
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".writable"
            probe.write_text("x")
            probe.unlink()
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise InputError(f"state directory {self.path}: cannot be written ({error.strerror})") from None
        if free < FREE_BYTES_NEEDED:
            self.discard_if_new()
            needed = f"{FREE_BYTES_NEEDED // 1024**2} MiB for logs"
            raise InputError(f"state directory {self.path}: {free // 1024} KiB free; expected {needed}")

    def discard_if_new(self) -> None:
        """Remove the folder again if `prepare` made it: a start that fails leaves nothing behind."""
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)

    def require_free(self) -> None:
        """Raise CheckFailed, saying who holds the folder, if somebody does. Creates nothing."""
        if self.path.is_dir():
            self.acquire()
            self.release()

    def acquire(self) -> None:
        """Hold the folder until this process ends. Raises CheckFailed that says who holds it."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"state directory {self.path}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise CheckFailed(f"{self.holder()}; stop it with `appliance down`") from None
        self._lock = descriptor

    def release(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def holder(self) -> str:
        """Who holds the folder, in words."""
        state = self.read()
        if state is None:
            return f"state directory {self.path} is held by another run that is just starting"
        names = ", ".join(f"{p.name} on port {p.port}" for p in state.processes)
        return (
            f"state directory {self.path} is held by process {state.supervisor_pid}, {state.phase} since "
            f"{state.started}: topology {state.plan.topology}, {names}"
        )

    def read(self) -> RunState | None:
        """The last state written here, or None. A file that cannot be read counts as none."""
        try:
            return RunState.read(self.state_file)
        except InputError:
            return None

    def log_of(self, name: str) -> Path:
        """The log file of the process called `name`."""
        return self.logs / f"{name}.log"


def supervisor_alive(state: RunState) -> bool:
    """Whether the supervisor that wrote `state` is still running."""
    return is_alive(state.supervisor_pid, state.supervisor_created)


def is_alive(pid: int, created: float) -> bool:
    """Whether the process `pid` that started at `created` (psutil's create_time) still runs."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created) < 0.01 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
