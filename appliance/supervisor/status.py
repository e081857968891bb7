"""What runs now: the state that the supervisor wrote, and what the processes themselves say."""

import asyncio
from pathlib import Path

import psutil

from appliance.documents import ProcessStatus, RunState, Status
from appliance.engines.sglang.health import generates
from appliance.engines.smg.health import has_workers
from appliance.supervisor import session
from appliance.supervisor.state import StateDirectory, supervisor_alive

HEALTH_TIMEOUT_S = 5.0


def status(state_dir: Path) -> Status | None:
    """The status of the run in `state_dir`, or None if there never was one. Takes a few seconds at most."""
    state = StateDirectory(state_dir).read()
    return None if state is None else asyncio.run(look(state))


async def look(state: RunState) -> Status:
    """Ask every process of `state` at once whether it answers."""
    alive = supervisor_alive(state)
    phase = state.phase if alive or state.phase in ("stopped", "failed") else "killed"

    async def answers(name: str, port: int) -> bool:
        probe = has_workers if name == "router" else generates
        return alive and await probe(state.plan.url(port), timeout_s=HEALTH_TIMEOUT_S)

    answering = await asyncio.gather(*(answers(process.name, process.port) for process in state.processes))
    return Status(
        phase=phase,
        endpoint=state.endpoint,
        topology=state.plan.topology,
        model=state.plan.model.served_name,
        plan_identity=state.plan.identity(),
        started=state.started,
        supervisor_pid=state.supervisor_pid,
        processes=[
            ProcessStatus(
                name=process.name,
                phase=process.phase if alive or phase != "killed" else "killed",
                answers=answered,
                pid=process.session,
                port=process.port,
                resident_mib=resident_mib(process.session) if alive and process.session else 0,
                restarts=process.restarts,
                last_error=process.last_error,
            )
            for process, answered in zip(state.processes, answering, strict=True)
        ],
        error=state.error,
    )


def resident_mib(leader: int) -> int:
    """Resident memory of all processes of a session, in MiB; pages that they share count more than once."""
    total = 0
    for process in session.members(leader):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total // 1024**2
