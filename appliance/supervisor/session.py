"""All processes of one worker: each is started as the leader of a session of its own, which its children share."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

SHARED_MEMORY = Path("/dev/shm")


def members(session: int) -> list[psutil.Process]:
    """The living processes of `session`, leader included; zombies are not alive."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
    return found


def kill(session: int, patience_s: float = 10.0) -> bool:
    """SIGKILL every member of `session`, and wait until none is left. Returns whether none is.

    multiprocessing's resource trackers come last, after a chance to end by themselves: they remove the
    semaphores that the others left in /dev/shm, which nothing else knows by name.
    """
    deadline = time.monotonic() + patience_s
    while alive := members(session):
        if time.monotonic() > deadline:
            return False
        trackers = [process for process in alive if is_resource_tracker(process)]
        others = [process for process in alive if process not in trackers]
        if others or time.monotonic() > deadline - patience_s / 2:
            send(others or trackers, signal.SIGKILL)
        send(trackers, signal.SIGCONT)
        time.sleep(0.05)
    return True


def is_running(process: psutil.Process) -> bool:
    """Whether `process` still runs: it is neither gone, nor a zombie, nor another one with its pid."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_resource_tracker(process: psutil.Process) -> bool:
    """Whether `process` is the helper of Python's multiprocessing that removes leaked semaphores."""
    try:
        return "multiprocessing.resource_tracker" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to those of `processes` that are still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def shared_memory(session: int) -> list[str]:
    """The files in /dev/shm that members of `session` have mapped."""
    paths: set[str] = set()
    for process in members(session):
        paths |= mapped(process.pid)
    return sorted(paths)


def mapped(pid: int) -> set[str]:
    """The files in /dev/shm that process `pid` has mapped; none if it is gone or not ours to look at."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    prefix = f"{SHARED_MEMORY}/"
    return {line[line.index(prefix) :] for line in lines if prefix in line and not line.endswith(" (deleted)")}


def remove_shared_memory(paths: list[str], created_after: float) -> None:
    """Remove those of `paths` that were made after `created_after` (seconds since the epoch) and that nobody maps.

    A worker also maps files that others own; those are older than it, or still in use.
    """
    leftovers = [Path(path) for path in paths if Path(path).parent == SHARED_MEMORY and made_after(path, created_after)]
    if not leftovers:
        return
    in_use = set().union(*(mapped(pid) for pid in psutil.pids()))
    for path in leftovers:
        if str(path) not in in_use:
            path.unlink(missing_ok=True)


def made_after(path: str, moment: float) -> bool:
    """Whether the file at `path` exists and its inode changed last after `moment`."""
    try:
        return os.stat(path).st_ctime >= moment - 1.0  # create_time has a resolution of a clock tick
    except OSError:
        return False
