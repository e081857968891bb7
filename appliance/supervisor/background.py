"""A run in the background: start it, wait until it serves, stop it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from appliance.documents import Plan, RunState
from appliance.errors import CheckFailed, InputError
from appliance.supervisor.recovery import recover
from appliance.supervisor.state import StateDirectory

POLL_S = 0.2
STOP_PATIENCE_S = 30.0
"""On top of the plan's own time to stop, once for the router and once for the workers."""


def start_in_background(plan: Plan, state_dir: Path, on_change: Callable[[RunState], None]) -> RunState:
    """Start `appliance up` in a session of its own and wait until it serves; an interrupt stops it again.

    Raises InputError or CheckFailed with the supervisor's own message when it does not come to serve.
    """
    directory = StateDirectory(state_dir)
    directory.require_free()
    directory.prepare()
    with tempfile.TemporaryDirectory(prefix="appliance-start-") as scratch:
        plan_file = Path(scratch) / "plan.json"
        plan.write(plan_file)
        messages = directory.path / "up.out"
        with messages.open("w") as output:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "appliance", "up", str(plan_file), "--state-dir", str(state_dir)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return wait_until_serving(supervisor, directory, messages, on_change)
        except BaseException as error:
            if supervisor.poll() is None:
                supervisor.terminate()
                supervisor.wait()
            if isinstance(error, InputError):
                directory.discard_if_new()
            raise


def wait_until_serving(
    supervisor: subprocess.Popen, directory: StateDirectory, messages: Path, on_change: Callable[[RunState], None]
) -> RunState:
    """Wait for the run of `supervisor` to serve. Raises what it ended with, with the message that it left."""
    shown = None
    while True:
        ended = supervisor.poll()
        state = directory.read()
        if state is not None and state.supervisor_pid == supervisor.pid:
            if state != shown or state.phase == "starting":
                on_change(state)
                shown = state
            if state.phase == "serving":
                return state
        if ended is not None:
            text = messages.read_text(errors="replace")
            _, found, message = text.partition("error: ")
            error = InputError if ended == 2 else CheckFailed
            raise error(message.strip() if found else f"the supervisor ended with {ended}: {text[-500:]}")
        time.sleep(POLL_S)


def stop(state_dir: Path, on_change: Callable[[RunState], None]) -> str:
    """Stop the run that holds `state_dir`, or clean up after one that was killed. Returns what was done, in words.

    Raises CheckFailed when the run may not be stopped by us or does not end.
    """
    directory = StateDirectory(state_dir)
    nothing = f"nothing is running in {state_dir}"
    supervisor = directory.holder_pid()
    if supervisor is None:
        if directory.read() is None:
            return nothing
        directory.acquire()
        try:
            return recover(directory) or nothing
        finally:
            directory.release()
    state = directory.read()
    patience_s = STOP_PATIENCE_S + 2 * state.plan.stop_timeout_s if state else STOP_PATIENCE_S
    try:
        os.kill(supervisor, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended just now
    except PermissionError:
        raise CheckFailed(f"{directory.holder()}; it belongs to another user") from None
    deadline = time.monotonic() + patience_s
    while directory.holder_pid() == supervisor:
        if time.monotonic() > deadline:
            raise CheckFailed(f"supervisor {supervisor} did not end within {patience_s:.0f} s")
        latest = directory.read()
        if latest is not None and latest.phase == "stopping":
            on_change(latest)
        time.sleep(POLL_S)
    return f"stopped {', '.join(process.name for process in state.processes)}" if state else "stopped"
