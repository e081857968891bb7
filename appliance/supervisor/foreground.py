"""Serve a plan in this process until it is stopped."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from appliance.documents import Plan, RunState
from appliance.errors import InputError
from appliance.preflight.before_start import require_startable
from appliance.preflight.ports import require_free
from appliance.supervisor.recovery import recover
from appliance.supervisor.state import StateDirectory
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
    require_startable(plan)
    directory = StateDirectory(state_dir)
    directory.prepare()
    directory.acquire()  # until this process ends: whoever sees the folder free must find nothing of this run
    recovered = recover(directory)
    if recovered:
        on_recovery(recovered)
    try:
        require_free(plan)  # only now: a run that was killed may have held the same ports
    except InputError:
        directory.discard_if_new()
        raise
    asyncio.run(Supervisor(plan, directory, on_change).run())
