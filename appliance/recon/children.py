"""Child processes that never outlive the program: not after a time-out, not after Ctrl-C, not after SIGTERM.

Probes run in threads that nobody waits for, so each child is known here by name until it has ended.
"""

import atexit
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_living: set[subprocess.Popen] = set()
_lock = threading.Lock()
_closing = False


def start(words: list[str], **options) -> subprocess.Popen:
    """Start a command in a process group of its own, with pipes. Raises OSError where it cannot be run."""
    with _lock:
        if _closing:
            raise OSError(0, "the program is ending")
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options
        )
        _living.add(process)
        return process


def end(process: subprocess.Popen, patience_s: float = 0.5) -> None:
    """Kill what is left of a process and its group; wait a moment for it, and no longer: it may hang in a driver."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()
    with _lock:
        _living.discard(process)


def run(words: list[str], limit_s: float, text: str | None = None, **options) -> tuple[int, str, str]:
    """Run a command to its end: its exit code, standard output and standard error.

    Raises OSError where it cannot be run, and TimeoutError after `limit_s` seconds, when it has been ended.
    """
    process = start(words, stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL, **options)
    try:
        out, err = process.communicate(None if text is None else text.encode(), timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{os.path.basename(words[0])} not back within {limit_s:g} s") from None
    finally:
        end(process)
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


@atexit.register
def end_all() -> None:
    """End every child that is still there, and let none be started any more."""
    global _closing
    with _lock:
        _closing = True
        left = list(_living)
    for process in left:
        end(process, patience_s=0.1)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the program as Ctrl-C does, within the block; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
