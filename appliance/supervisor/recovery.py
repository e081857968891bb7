"""Clean up after a run whose supervisor was killed, from the state that it left."""

import shutil
from pathlib import Path

import psutil

from appliance.documents import RunState
from appliance.supervisor import session
from appliance.supervisor.state import StateDirectory


def recover(directory: StateDirectory) -> str | None:
    """End what an earlier run left behind in a directory that is held by us now. Returns what was done, in words.

    None if the earlier run ended by itself, or if there was none.
    """
    state = directory.read()
    if state is None or state.phase in ("stopped", "failed"):
        return None
    ended = 0
    for process in state.processes:
        if process.session is None:
            continue
        if belongs_to(state, process.session, process.created):
            ended += len(session.members(process.session))
            shared = set(process.shared_memory) | set(session.shared_memory(process.session))
            session.kill(process.session)
        else:
            shared = set(process.shared_memory)
        session.remove_shared_memory(sorted(shared), created_after=process.created or state.supervisor_created)
    remove_scratch(Path(state.scratch))
    error = f"supervisor {state.supervisor_pid} was killed while {state.phase}"
    state.model_copy(update={"phase": "failed", "error": error}).write(directory.state_file)
    return f"{error}: {ended} processes ended, shared memory and temporary files removed"


def belongs_to(state: RunState, leader: int, created: float | None) -> bool:
    """Whether the session `leader` is still the one of `state`.

    A session's id is no other process's pid while a member lives, so only two cases are not ours: the machine
    was started anew, or all members are gone and the pid was given to somebody else.
    """
    if psutil.boot_time() > state.supervisor_created:
        return False
    try:
        return abs(psutil.Process(leader).create_time() - (created or 0.0)) < 0.01
    except psutil.NoSuchProcess:
        return True


def remove_scratch(folder: Path) -> None:
    """Remove a run's temporary folder, if it is one by its name."""
    if folder.name.startswith("appliance-"):
        shutil.rmtree(folder, ignore_errors=True)
