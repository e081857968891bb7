"""How a process's end is noticed. A shell script stands in for a worker here: real ones die in tests/e2e."""

import asyncio
import time

import pytest

from appliance.supervisor.log import ProcessLog
from appliance.supervisor.process import SupervisedProcess, exit_in_words


async def never_answers() -> bool:
    return False


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Make a SupervisedProcess that runs a shell script instead of `appliance launch`."""

    def make(script: str) -> SupervisedProcess:
        stand_in = tmp_path / "stand-in"
        stand_in.write_text(f"#!/bin/sh\n{script}\n")
        stand_in.chmod(0o755)
        monkeypatch.setattr("appliance.supervisor.process.sys.executable", str(stand_in))
        log = ProcessLog("worker", tmp_path / "worker.log")
        return SupervisedProcess("worker", 1, tmp_path / "plan.json", tmp_path, log, never_answers, never_answers)

    return make


def test_an_exit_is_noticed_at_once_though_a_child_keeps_the_output_open(worker):
    async def run():
        process = worker("sleep 30 & echo last words; exit 3")
        await process.start()
        started = time.monotonic()
        reason = await process.until_failure(60)
        noticed = time.monotonic() - started
        await process.stop(grace_s=0)
        return reason, noticed, list(process.log.tail)

    reason, noticed, tail = asyncio.run(run())
    assert reason == "ended with exit code 3"
    assert noticed < 3
    assert tail == ["last words"]


def test_stopping_does_not_wait_for_a_daemon_that_keeps_the_output_open(worker):
    async def run():
        process = worker("setsid sleep 20 & trap 'exit 0' TERM; while :; do sleep 0.1; done")
        await process.start()
        await asyncio.sleep(0.5)
        started = time.monotonic()
        await process.stop(grace_s=5)
        return time.monotonic() - started

    assert asyncio.run(run()) < 4


def test_in_a_hurry_the_grace_is_cut_short(worker):
    async def run():
        process, hurry = worker("trap '' TERM; while :; do sleep 0.1; done"), asyncio.Event()
        await process.start()
        await asyncio.sleep(0.5)
        asyncio.get_running_loop().call_later(1, hurry.set)
        started = time.monotonic()
        await process.stop(grace_s=60, hurry=hurry)
        return time.monotonic() - started

    assert asyncio.run(run()) < 5


def test_a_worker_that_never_answers_is_given_its_time_and_no_more(worker):
    async def run():
        process = worker("sleep 60")
        await process.start()
        reason = await process.until_failure(start_timeout_s=1)
        await process.stop(grace_s=0)
        return reason

    assert asyncio.run(run()) == "did not answer within 1 s of its start"


@pytest.mark.parametrize("code, text", [(0, "exit code 0"), (-9, "SIGKILL"), (-15, "SIGTERM"), (-99, "signal 99")])
def test_an_exit_in_words(code, text):
    assert text in exit_in_words(code)
