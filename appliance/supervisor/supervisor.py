"""Run a plan: start all, prove that the whole answers, watch, restart or stop, leave nothing behind."""

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil

from appliance.documents import Phase, Plan, RunState
from appliance.engines.sglang.health import generates
from appliance.engines.smg.health import has_workers, is_alive
from appliance.errors import CheckFailed, InputError
from appliance.supervisor.completion import completes
from appliance.supervisor.log import ProcessLog
from appliance.supervisor.process import SupervisedProcess
from appliance.supervisor.state import StateDirectory
from appliance.supervisor.stop_signals import STOP_SIGNALS

TICK_S = 1.0
ROUTER = "router"
RESTART_PAUSE_S = 5.0
"""Before the first restart, doubled for each further one: long enough for the peers of a worker to notice its death.
SGLang's decode keeps the NIXL state of a prefill that is back before two heartbeats were missed (SGLang 0.5.23,
srt/disaggregation/common/conn.py), and every request then waits for ever."""
LONGEST_PAUSE_S = 30.0
HEALTHY_S = 600.0
"""A worker that has served for so long starts anew with all the restarts that the plan allows."""


class Supervisor:
    """One run of a plan. `on_change` is called with the state at every change and once a second while starting."""

    def __init__(self, plan: Plan, directory: StateDirectory, on_change: Callable[[RunState], None]):
        self.plan = plan
        self.directory = directory
        self.phase: Phase = "starting"
        self.error: str | None = None
        self._on_change = on_change
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._created = psutil.Process().create_time()
        self._log = ProcessLog("supervisor", directory.supervisor_log)
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._scratch = Path(tempfile.gettempdir()) / f"appliance-{secrets.token_hex(4)}"
        self._processes: list[SupervisedProcess] = []

    def _all_processes(self) -> list[SupervisedProcess]:
        self._scratch.mkdir(mode=0o700)
        plan_file = self._scratch / "plan.json"
        self.plan.write(plan_file)
        wanted = [(w.name, w.port, generates, generates) for w in self.plan.workers]
        if self.plan.router:
            # a router without workers is not ready, but it is not the router that has failed
            wanted.append((ROUTER, self.plan.router.port, has_workers, is_alive))
        return [
            SupervisedProcess(
                name,
                port,
                plan_file,
                self._scratch,
                ProcessLog(name, self.directory.log_of(name)),
                is_ready=partial(is_ready, self.plan.url(port)),
                answers=partial(answers, self.plan.url(port)),
            )
            for name, port, is_ready, answers in wanted
        ]

    async def run(self) -> None:
        """Serve until SIGINT, SIGTERM or a failure. Raises CheckFailed, with the last log lines, on a failure."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop_requested)
        tasks: list[asyncio.Task] = []
        try:
            self._processes = self._all_processes()
            guards = [
                asyncio.create_task(self._guard(*each)) for each in zip(self._processes, self._before(), strict=True)
            ]
            serving = asyncio.create_task(self._until_serving())
            stop = asyncio.create_task(self._stop.wait())
            tasks = [serving, stop, *guards]
            await asyncio.wait({serving, stop, *guards}, return_when=asyncio.FIRST_COMPLETED)
            if not stop.done():
                finished = [task for task in (serving, *guards) if task.done()]
                if finished == [serving]:
                    serving.result()
                    await asyncio.wait({stop, *guards}, return_when=asyncio.FIRST_COMPLETED)
                for guard in guards:
                    if guard.done():
                        guard.result()
        except Exception as error:
            self.error = str(error)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop_all()

    async def _until_serving(self) -> None:
        while not all(process.ready.is_set() for process in self._processes):
            self._publish()
            await asyncio.sleep(TICK_S)
        problem = await completes(self.plan)
        if problem:
            raise CheckFailed(
                f"all workers are ready, but a completion through {self.plan.endpoint()} failed: {problem}"
            )
        self.phase = "serving"
        self._say("INFO", f"serving {self.plan.model.served_name} at {self.plan.endpoint()}")

    def _before(self) -> list[SupervisedProcess | None]:
        """What each process waits for before its first start: on a GPU that is shared, the worker before it.

        An engine takes its share of the memory that it finds free, so two must not measure at once.
        """
        workers = len(self.plan.workers) if self.plan.shared_gpus else 0
        return [self._processes[n - 1] if 0 < n < workers else None for n in range(len(self._processes))]

    async def _guard(self, process: SupervisedProcess, before: SupervisedProcess | None) -> None:
        """Keep one process running as the plan says. Raises CheckFailed when it may not be started again."""
        if before is not None:
            await before.ready.wait()
        while True:
            await process.start()
            self._say("INFO", f"{process.name} starting, port {process.port}")
            ready = asyncio.create_task(self._announce_ready(process))
            reason = await process.until_failure(self.plan.start_timeout_s)
            ready.cancel()
            process.phase, process.last_error = "failed", reason
            if process.ready_at is not None and time.monotonic() - process.ready_at > HEALTHY_S:
                process.restarts = 0
            report = "\n  ".join([f"{process.name} {reason}; its last log lines:", *process.log.tail])
            self._say("ERROR", report)
            if self.plan.on_worker_exit == "stop" or process.restarts >= self.plan.max_restarts:
                if self.plan.on_worker_exit == "restart":
                    report = (
                        f"{process.name} failed after {process.restarts} restarts, as many as the plan allows\n{report}"
                    )
                raise CheckFailed(report)
            await process.stop(grace_s=0)
            process.restarts += 1
            await asyncio.sleep(min(RESTART_PAUSE_S * 2 ** (process.restarts - 1), LONGEST_PAUSE_S))

    async def _announce_ready(self, process: SupervisedProcess) -> None:
        await process.ready.wait()
        self._say("INFO", f"{process.name} ready after {process.ready_after_s} s")

    async def _stop_all(self) -> None:
        self.phase = "stopping"
        self._publish()
        router = [process for process in self._processes if process.name == ROUTER]
        workers = [process for process in self._processes if process.name != ROUTER]
        for group in (router, workers):  # the router first: it must not see its workers go one by one
            await asyncio.gather(*(process.stop(self.plan.stop_timeout_s, self._hurry) for process in group))
        for process in self._processes:
            process.phase = "failed" if process.phase == "failed" else "stopped"
            process.log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        self.phase = "failed" if self.error else "stopped"
        self._say("INFO", self.phase)
        self._log.close()

    def _stop_requested(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def _say(self, level: str, message: str) -> None:
        self._log.write(level, message)
        self._publish()

    def _publish(self) -> None:
        state = self.state()
        try:
            state.write(self.directory.state_file)
        except InputError as error:  # a full disk does not stop a service
            self._log.write("WARNING", str(error))
        self._on_change(state)

    def state(self) -> RunState:
        """The run as the state file shows it."""
        return RunState(
            phase=self.phase,
            supervisor_pid=os.getpid(),
            supervisor_created=self._created,
            started=self._started,
            scratch=str(self._scratch),
            endpoint=self.plan.endpoint(),
            plan=self.plan,
            processes=[process.state() for process in self._processes],
            error=self.error,
        )
