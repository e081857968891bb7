"""One supervised process: started through `appliance launch`, watched, its output logged, its session ended."""

import asyncio
import os
import signal
import subprocess
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
DRAIN_S = 0.5
READ_BYTES = 65536


class SupervisedProcess:
    """A worker or the router of a run. `is_ready` tells whether it serves yet, `answers` whether it still does."""

    def __init__(
        self,
        name: str,
        port: int,
        plan_file: Path,
        scratch: Path,
        log: ProcessLog,
        is_ready: Callable[[], Awaitable[bool]],
        answers: Callable[[], Awaitable[bool]],
    ):
        self.name = name
        self.port = port
        self.phase: Phase = "starting"
        self.restarts = 0
        self.ready = asyncio.Event()
        self.ready_after_s: float | None = None
        self.ready_at: float | None = None
        self.last_error: str | None = None
        self.shared_memory: list[str] = []
        self.created: float | None = None
        self.log = log
        self._plan_file = plan_file
        self._scratch = scratch
        self._is_ready = is_ready
        self._answers = answers
        self._process: subprocess.Popen | None = None
        self._exited = asyncio.Event()
        self._pump: asyncio.Task | None = None
        self._parts: list[psutil.Process] = []

    async def start(self) -> None:
        """Start the process as the leader of a new session; its output goes to the log."""
        self.phase, self.ready_after_s, self.ready_at = "starting", None, None
        self.ready.clear()
        self._exited = asyncio.Event()
        self._parts = []
        temporary = self._scratch / self.name
        temporary.mkdir(exist_ok=True)
        environment = os.environ | {SUPERVISOR_PID: str(os.getpid()), "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
        environment.pop("NOTIFY_SOCKET", None)  # a worker does not speak for the whole run
        words = [sys.executable, "-m", "appliance", "launch", self.name, "--plan", str(self._plan_file)]
        # not asyncio's own subprocess: its wait() waits for the output's end too, which a dying child may keep open
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            self.created = psutil.Process(self._process.pid).create_time()
        except psutil.NoSuchProcess:
            self.created = time.time()
        self._notice_exit()
        self._pump = asyncio.create_task(self._log_output())

    def _notice_exit(self) -> None:
        loop, process, exited = asyncio.get_running_loop(), self._process, self._exited
        descriptor = os.pidfd_open(process.pid)

        def on_exit() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            process.wait()
            exited.set()

        loop.add_reader(descriptor, on_exit)

    async def until_failure(self, start_timeout_s: float) -> str:
        """Wait until the process has failed, and return why, in words. Sets `ready` once it answers."""
        exit_task = asyncio.create_task(self._exited.wait())
        watch_task = asyncio.create_task(self._watch(start_timeout_s))
        try:
            await asyncio.wait({exit_task, watch_task}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({self._pump}, timeout=DRAIN_S)  # its last words
            return exit_in_words(self._process.returncode) if exit_task.done() else watch_task.result()
        finally:
            exit_task.cancel()
            watch_task.cancel()

    async def _watch(self, start_timeout_s: float) -> str:
        started = time.monotonic()
        while not await self._is_ready():
            if time.monotonic() - started > start_timeout_s:
                return f"did not answer within {start_timeout_s:.0f} s of its start"
            await asyncio.sleep(READY_POLL_S)
        self.ready_at = time.monotonic()
        self.ready_after_s = round(self.ready_at - started, 1)
        self._parts = essential(session.members(self._process.pid))
        self.shared_memory = await asyncio.to_thread(session.shared_memory, self._process.pid)  # many files to read
        self.phase = "serving"
        self.ready.set()
        silence = asyncio.create_task(self._until_silent())
        try:
            while not silence.done():
                gone = [part for part in self._parts if not session.is_running(part)]
                if gone:
                    return f"lost {len(gone)} of its {len(self._parts)} essential processes"
                await asyncio.wait({silence}, timeout=WATCH_S)
            return silence.result()
        finally:
            silence.cancel()

    async def _until_silent(self) -> str:
        failures = 0
        while failures < HEALTH_FAILURES:
            await asyncio.sleep(HEALTH_S)
            failures = 0 if await self._answers() else failures + 1
        return f"did not answer {HEALTH_FAILURES} times in a row"

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Ask the process to end, kill its session after `grace_s` or once `hurry` is set, and clean up after it."""
        if self._process is None:
            return
        pid = self._process.pid
        shared = set(self.shared_memory) | set(await asyncio.to_thread(session.shared_memory, pid))
        if not self._exited.is_set() and grace_s > 0:
            self._process.send_signal(signal.SIGTERM)
            waits = [asyncio.create_task(event.wait()) for event in (self._exited, hurry) if event is not None]
            await asyncio.wait(waits, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
            if not self._exited.is_set():
                self.log.write("WARNING", "did not end in its time after SIGTERM: killed")
        if not await asyncio.to_thread(session.kill, pid):
            left = ", ".join(str(process.pid) for process in session.members(pid))
            self.log.write("ERROR", f"processes that do not end even when killed: {left}")
        await asyncio.wait({self._pump}, timeout=DRAIN_S)  # a daemon in a session of its own may keep the pipe open
        self._pump.cancel()
        await asyncio.to_thread(session.remove_shared_memory, sorted(shared), created_after=self.created)
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

    async def _log_output(self) -> None:
        stream = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(stream)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, self._process.stdout)
        rest = b""
        try:
            while chunk := await stream.read(READ_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.log.raw(line.decode(errors="replace"))
                if len(rest) > READ_BYTES:  # a line without an end must not grow without an end
                    self.log.raw(rest.decode(errors="replace"))
                    rest = b""
        finally:
            transport.close()
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
