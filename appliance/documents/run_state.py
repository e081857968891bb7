"""RunState and Status: what `up` is doing, as it wrote it down, and as it is found."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part
from appliance.documents.plan import Plan

Phase = Literal["starting", "serving", "stopping", "stopped", "failed"]


class ProcessState(Part):
    """One supervised process. `session` is its pid, and the id of the session of all that it started."""

    name: str
    phase: Phase
    session: int | None = None
    created: float | None = None
    """Start time of the process as psutil gives it: tells it from a later one with the same pid."""
    port: int
    restarts: int = 0
    ready_after_s: float | None = None
    shared_memory: list[str] = []
    """Files in /dev/shm that it has mapped: removed when it is gone."""
    last_error: str | None = None


class RunState(Document):
    """What `up` is doing, for `status`, `down` and the next `up`."""

    KIND: ClassVar[str] = "RunState"
    kind: Literal["RunState"] = "RunState"
    phase: Phase
    supervisor_pid: int
    supervisor_created: float
    started: str
    scratch: str
    """Folder for the sockets and temporary files of the run's processes: removed at its end."""
    endpoint: str
    plan: Plan
    processes: list[ProcessState] = []
    error: str | None = None


class ProcessStatus(Part):
    name: str
    phase: str
    answers: bool
    pid: int | None
    port: int
    resident_mib: int
    restarts: int
    last_error: str | None


class WorkerLoad(Part):
    """What a worker is doing now, by its own metrics."""

    name: str
    running: int
    """Requests in the batch."""
    queued: dict[str, int]
    """Requests that wait, by the engine's name of the queue; those that have none at this role are left out."""
    kv_use: float
    """Share of the KV cache's tokens that are taken."""
    output_tokens_per_s: float
    prompt_tokens: int
    """Since the start."""
    output_tokens: int
    kv_transfers: int
    """Since the start; a prefill worker's."""
    kv_bytes: int
    kv_latency_ms: float | None = None
    """Mean of a transfer since the start."""
    kv_gb_s: float | None = None


class GpuNow(Part):
    """A GPU at this moment; null where the driver does not tell."""

    index: int
    name: str | None = None
    memory_used_mib: int | None = None
    memory_mib: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    throttled: list[str] | None = None


class Status(Document):
    """A run as it is found at this moment."""

    KIND: ClassVar[str] = "Status"
    kind: Literal["Status"] = "Status"
    phase: str
    """As the supervisor wrote it; "killed" if the supervisor is gone without having stopped."""
    endpoint: str
    topology: str
    model: str
    plan_identity: str
    started: str
    supervisor_pid: int
    processes: list[ProcessStatus]
    error: str | None
    loads: list[WorkerLoad] = []
    """Of the workers that answer."""
    gpus: list[GpuNow] = []
    """Those of the plan, where there is a driver."""

    def serves(self) -> bool:
        """Whether the run is serving, and every process answers."""
        return self.phase == "serving" and all(process.answers for process in self.processes)
