"""The state directory of a run: who holds it, what runs, where the logs are."""

import fcntl
import os
import shutil
import time
from pathlib import Path

import psutil

from appliance.documents import RunState
from appliance.errors import CheckFailed, InputError

FREE_BYTES_NEEDED = 64 * 1024 * 1024
"""Room for the logs of a run (log.py keeps each below 4 MiB) and its records."""


class StateDirectory:
    """A folder that one run holds at a time: whoever has locked its file `lock`, in which its pid stands."""

    def __init__(self, path: Path):
        self.path = path
        self.state_file = path / "state.json"
        self.logs = path / "logs"
        self.supervisor_log = self.log_of("supervisor")
        self._lock_file = path / "lock"
        self._lock: int | None = None
        self._made: Path | None = None

    def prepare(self) -> None:
        """Create the folder, for its owner alone, and check that a run fits into it. Raises InputError."""
        try:
            self._made = next((p for p in [*reversed(self.path.parents), self.path] if not p.exists()), None)
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            probe = self.path / ".writable"
            probe.write_text("x")
            probe.unlink()
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            self.discard_if_new()
            raise InputError(f"state directory {self.path}: cannot be written ({error.strerror})") from None
        if free < FREE_BYTES_NEEDED:
            self.discard_if_new()
            needed = f"{FREE_BYTES_NEEDED // 1024**2} MiB for logs"
            raise InputError(f"state directory {self.path}: {free // 1024} KiB free; expected {needed}")

    def discard_if_new(self) -> None:
        """Remove what `prepare` made, if it made the folder: a start that fails leaves nothing behind."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    def require_free(self) -> None:
        """Raise CheckFailed, saying who holds the folder, if somebody does. Creates nothing."""
        if self._lock_file.exists():
            self.acquire()
            self.release()

    def acquire(self) -> None:
        """Hold the folder until this process ends. Raises CheckFailed that says who holds it."""
        try:
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"state directory {self.path}: cannot be written ({error.strerror})") from None
        if not lock(descriptor):
            os.close(descriptor)
            raise CheckFailed(f"{self.holder()}; stop it with `appliance down --state-dir {self.path}`")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._lock = descriptor

    def release(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def holder_pid(self) -> int | None:
        """The process that holds the folder now, or None if nobody does."""
        try:
            with self._lock_file.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = self._lock_file.read_text()
            return int(pid) if pid.isdigit() else None
        except OSError:
            return None
        return None

    def holder(self) -> str:
        """Who holds the folder, in words."""
        state, pid = self.read(), self.holder_pid()
        if state is None or state.supervisor_pid != pid:
            return f"state directory {self.path} is held by process {pid}, which is just starting"
        names = ", ".join(f"{p.name} on port {p.port}" for p in state.processes)
        return (
            f"state directory {self.path} is held by process {pid}, {state.phase} since "
            f"{state.started}: topology {state.plan.topology}, {names}"
        )

    def read(self) -> RunState | None:
        """The last state written here, or None if there is none. Raises InputError where it cannot be read."""
        try:
            if not self.state_file.exists():
                return None
        except OSError as error:
            raise InputError(f"{self.state_file}: cannot be read ({error.strerror})") from None
        return RunState.read(self.state_file)

    def log_of(self, name: str) -> Path:
        """The log file of the process called `name`."""
        return self.logs / f"{name}.log"


def lock(descriptor: int, tries: int = 5) -> bool:
    """Lock an open file for this process alone. More than one try, since a look at who holds it locks for a moment."""
    for _ in range(tries):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.05)
    return False


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
