"""Serve a plan in this process until it is stopped."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from appliance.documents import Plan
from appliance.preflight.before_start import require_startable
from appliance.supervisor.recovery import recover
from appliance.supervisor.state import RunState, StateDirectory
from appliance.supervisor.supervisor import Supervisor


def serve(
    plan: Plan,
    state_dir: Path,
    on_change: Callable[[RunState], None],
    on_recovery: Callable[[str], None] = lambda _: None,
) -> None:
    """Run `plan` until SIGINT or SIGTERM.

    Raises InputError when it cannot be started (nothing was), CheckFailed when somebody else holds the state
    directory or when a worker failed.
    """
    directory = StateDirectory(state_dir)
    directory.prepare()
    directory.acquire()
    try:
        recovered = recover(directory)
        if recovered:
            on_recovery(recovered)
        require_startable(plan)
        supervisor = Supervisor(plan, directory, on_change)
        asyncio.run(supervisor.run())
    finally:
        directory.release()
