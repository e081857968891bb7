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

    def serves(self) -> bool:
        """Whether the run is serving, and every process answers."""
        return self.phase == "serving" and all(process.answers for process in self.processes)
