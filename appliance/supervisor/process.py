"""One supervised process: started through `appliance launch`, watched, its output logged, its session ended."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from appliance.documents import Phase, ProcessState
from appliance.engines.sglang.processes import essential
from appliance.launch.worker import SUPERVISOR_PID
from appliance.supervisor import session
from appliance.supervisor.log import ProcessLog

READY_POLL_S = 0.5
WATCH_S = 1.0
HEALTH_S = 5.0
HEALTH_FAILURES = 2
READ_BYTES = 65536


class SupervisedProcess:
    """A worker or the router of a run. `answers` tells whether it serves now."""

    def __init__(
        self,
        name: str,
        port: int,
        plan_file: Path,
        scratch: Path,
        log: ProcessLog,
        answers: Callable[[], Awaitable[bool]],
    ):
        self.name = name
        self.port = port
        self.phase: Phase = "starting"
        self.restarts = 0
        self.ready = asyncio.Event()
        self.ready_after_s: float | None = None
        self.last_error: str | None = None
        self.shared_memory: list[str] = []
        self.created: float | None = None
        self.log = log
        self._plan_file = plan_file
        self._scratch = scratch
        self._answers = answers
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task | None = None
        self._parts: list[psutil.Process] = []

    async def start(self) -> None:
        """Start the process as the leader of a new session; its output goes to the log."""
        self.phase, self.ready_after_s = "starting", None
        self.ready.clear()
        self._parts = []
        temporary = self._scratch / self.name
        temporary.mkdir(exist_ok=True)
        environment = os.environ | {SUPERVISOR_PID: str(os.getpid()), "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
        words = [sys.executable, "-m", "appliance", "launch", self.name, "--plan", str(self._plan_file)]
        self._process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            self.created = psutil.Process(self._process.pid).create_time()
        except psutil.NoSuchProcess:
            self.created = time.time()
        self._pump = asyncio.create_task(self._log_output(self._process.stdout))

    async def until_failure(self, start_timeout_s: float) -> str:
        """Wait until the process has failed, and return why, in words. Sets `ready` once it answers."""
        exit_task = asyncio.create_task(self._process.wait())
        watch_task = asyncio.create_task(self._watch(start_timeout_s))
        try:
            await asyncio.wait({exit_task, watch_task}, return_when=asyncio.FIRST_COMPLETED)
            if exit_task.done():
                return exit_in_words(exit_task.result())
            return watch_task.result()
        finally:
            exit_task.cancel()
            watch_task.cancel()

    async def _watch(self, start_timeout_s: float) -> str:
        started = time.monotonic()
        while not await self._answers():
            if time.monotonic() - started > start_timeout_s:
                return f"did not answer within {start_timeout_s:.0f} s of its start"
            await asyncio.sleep(READY_POLL_S)
        self.ready_after_s = round(time.monotonic() - started, 1)
        self._parts = essential(session.members(self._process.pid))
        self.shared_memory = session.shared_memory(self._process.pid)
        self.phase = "serving"
        self.ready.set()
        health = asyncio.create_task(self._until_silent())
        try:
            while not health.done():
                gone = [part for part in self._parts if not part.is_running() or part.status() == psutil.STATUS_ZOMBIE]
                if gone:
                    return f"lost {len(gone)} of its {len(self._parts)} essential processes"
                await asyncio.wait({health}, timeout=WATCH_S)
            return health.result()
        finally:
            health.cancel()

    async def _until_silent(self) -> str:
        failures = 0
        while failures < HEALTH_FAILURES:
            await asyncio.sleep(HEALTH_S)
            failures = 0 if await self._answers() else failures + 1
        return f"did not answer {HEALTH_FAILURES} times in a row"

    async def stop(self, grace_s: float) -> None:
        """Ask the process to end, end its whole session after `grace_s`, and remove what it left in /dev/shm."""
        if self._process is None:
            return
        pid = self._process.pid
        shared = set(self.shared_memory) | set(session.shared_memory(pid))
        if self._process.returncode is None and grace_s > 0:
            self._process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), grace_s)
            except TimeoutError:
                self.log.write("WARNING", f"did not end within {grace_s:.0f} s of SIGTERM: killed")
        await asyncio.to_thread(session.kill, pid)
        await self._process.wait()
        await self._pump
        session.remove_shared_memory(sorted(shared), created_after=self.created)
        self.shared_memory = []

    def state(self) -> ProcessState:
        """The process as the state file shows it."""
        return ProcessState(
            name=self.name,
            phase=self.phase,
            session=self._process.pid if self._process else None,
            created=self.created,
            port=self.port,
            restarts=self.restarts,
            ready_after_s=self.ready_after_s,
            shared_memory=self.shared_memory,
            last_error=self.last_error,
        )

    async def _log_output(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await stream.read(READ_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.log.raw(line.decode(errors="replace"))
            if len(rest) > READ_BYTES:  # a line without an end must not grow without an end
                self.log.raw(rest.decode(errors="replace"))
                rest = b""
        if rest:
            self.log.raw(rest.decode(errors="replace"))


def exit_in_words(code: int) -> str:
    """How a process ended: its exit code, or the signal by name."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
