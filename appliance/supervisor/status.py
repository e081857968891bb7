"""What runs now: the state that the supervisor wrote, and what the processes themselves say."""

import asyncio
from pathlib import Path

import httpx
import psutil

from appliance.documents import ProcessStatus, RunState, Status, WorkerLoad
from appliance.engines.sglang.health import generates
from appliance.engines.sglang.metrics import load_of
from appliance.engines.smg.health import has_workers
from appliance.recon.machine.gpus_now import gpus_now
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

    async def load(name: str, port: int) -> WorkerLoad | None:
        return await metrics(name, state.plan.url(port)) if alive and name != "router" else None

    asked = [(process.name, process.port) for process in state.processes]
    on_gpus = {gpu for worker in state.plan.workers for gpu in worker.gpus}
    answering, loads, gpus = await asyncio.gather(
        asyncio.gather(*(answers(*each) for each in asked)),
        asyncio.gather(*(load(*each) for each in asked)),
        asyncio.to_thread(gpus_now, on_gpus),
    )
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
        loads=[load for load in loads if load is not None],
        gpus=gpus,
    )


async def metrics(name: str, url: str) -> WorkerLoad | None:
    """What a worker is doing; None where it does not say."""
    async with httpx.AsyncClient(trust_env=False, timeout=HEALTH_TIMEOUT_S) as client:
        try:
            return load_of(name, (await client.get(f"{url}/metrics")).raise_for_status().text)
        except (httpx.HTTPError, ValueError):
            return None


def resident_mib(leader: int) -> int:
    """Resident memory of all processes of a session, in MiB; pages that they share count more than once."""
    total = 0
    for process in session.members(leader):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total // 1024**2
