"""Topologies under load on the CPU: real engines, NIXL, router and load generator; no statement on speed."""

import signal
import threading
from contextlib import contextmanager

import httpx
import psutil
import pytest

from appliance.bench.compare import compare
from appliance.bench.serve.repetition import measure
from appliance.bench.serve.run import require_planned
from appliance.documents import BenchRecord, Cell, Plan, Repetition, Workload
from appliance.engines.sglang.client import SglangClient
from appliance.errors import CheckFailed
from tests.helpers.bench_records import simulated_record
from tests.helpers.cli import appliance, running, wait_for
from tests.helpers.ports import free_range

pytestmark = pytest.mark.usefixtures("leaves_nothing")

MATRIX = ["--concurrency", "2", "--input", "64", "--input", "256", "--output-tokens", "16", "--requests-each", "3"]
ONCE = ["--repetitions", "1", "--slo-ttft", "60000", "--slo-tpot", "10000"]


def test_a_stopped_run_keeps_its_cells_and_goes_on_to_the_end(demo_model, tmp_path):
    place, port = tmp_path / "bench.json", free_range().base
    words = ["bench", "serve", "--state-dir", tmp_path / "state", "--base-port", port, "--model", demo_model]
    words += [*MATRIX, *ONCE, "--topology", "pd", "--topology", "single"]
    with running(*words, "--output", place) as run:
        wait_for(lambda: place.exists() and BenchRecord.read(place).cells, 200, "the first cell is measured")
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
    stopped = BenchRecord.read(place)
    assert stopped.cells and not stopped.complete

    done = appliance(*words, "--resume", place, timeout=500)
    assert done.returncode == 0, done.stderr
    record = BenchRecord.read(place)
    assert record.complete and record.stamped() and not record.simulated
    assert record.cells[0].repetitions == stopped.cells[0].repetitions
    assert [(cell.topology, cell.workload.name) for cell in record.cells] == [
        (topology, name)
        for topology in ("pd", "single")
        for name in ("plain", "plain", "tail isolation", "multi-turn", "structured output")
    ]
    for cell in record.cells:
        (measured,) = cell.repetitions
        assert measured.completed == measured.requests == cell.workload.requests
        assert measured.goodput_per_s > 0
        assert 0 < measured.ttft_ms.p50 <= measured.e2e_ms.p50
        assert (measured.kv_transfers is not None) == (cell.topology == "pd")
        if cell.topology == "pd":
            assert measured.kv_transfers.transfers >= measured.requests and measured.kv_transfers.bytes > 0
        if cell.workload.name != "structured output":
            assert measured.output_tokens == 16 * measured.requests
    multi_turn = next(cell for cell in record.cells if cell.workload.name == "multi-turn")
    assert multi_turn.repetitions[0].cached_tokens > 0  # later turns send what earlier ones have sent
    assert "Measured on a CPU" in done.stdout


LOAD = Workload(name="plain", input_tokens=64, output_tokens=16, concurrency=1, requests=3)
BYTES, TEXT = 258, 100_000
"""Vocabularies: of the demo's model, whose prompts may begin alike by chance, and one where that is to be noticed."""


def test_what_spoils_figures_is_caught(run, monkeypatch):
    """A server of another plan, another client, a cache that nobody emptied, a slow worker: on one real server."""
    up = run("single")
    plan = up.plan()

    worker = plan.workers[0].model_copy(update={"args": ["--page-size", "7"]})
    other_plan = plan.model_copy(update={"workers": [worker]})
    require_planned(plan)
    with pytest.raises(CheckFailed, match="identity of .*page.size"):
        require_planned(other_plan)
    refused_port = appliance("bench", "serve", "--plan", up.plan_file, "--state-dir", up.state_dir.parent / "other")
    assert refused_port.returncode != 0 and str(plan.workers[0].port) in refused_port.stderr

    with other_client(plan), pytest.raises(CheckFailed, match="expected no other traffic while measuring"):
        measure(plan, LOAD, 1, BYTES)

    usual = [measure(plan, LOAD, seed, BYTES) for seed in (2, 3, 4)]
    with monkeypatch.context() as patch:
        patch.setattr(SglangClient, "flush_cache", lambda client: None)
        patch.setattr("appliance.bench.serve.repetition.CACHED_TOKENS", 16)
        with pytest.raises(CheckFailed, match="prompt tokens came from a prefix cache"):
            measure(plan, LOAD, 4, TEXT)

    with slowed(up.session_of(plan.workers[0].name)):
        slow = [measure(plan, LOAD, seed, BYTES) for seed in (5, 6, 7)]
    record = simulated_record(topologies=("single",))  # its provenance alone: the cells are measured
    before, after = (record.model_copy(update={"cells": [cell(measured)]}) for measured in (usual, slow))
    regressions = {figure.figure for figure in compare(before, after, threshold=0.05).regressions()}
    assert {"TPOT p50", "E2E p50"} <= regressions


def cell(measured: list[Repetition]) -> Cell:
    return Cell(topology="single", workload=LOAD, repetitions=measured)


@contextmanager
def other_client(plan: Plan):
    """Short requests of somebody else, one after the other, with pauses in which the server is idle."""
    ended = threading.Event()

    def ask():
        body = {"model": plan.model.served_name, "prompt": "x", "max_tokens": 1}
        while not ended.wait(0.3):
            httpx.post(f"{plan.endpoint()}/v1/completions", json=body, trust_env=False, timeout=60)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def slowed(session: int):
    """The schedulers of a worker run a tenth of the time."""
    schedulers = [
        child for child in psutil.Process(session).children(recursive=True) if "scheduler" in " ".join(child.cmdline())
    ]
    assert schedulers
    ended = threading.Event()

    def hold():
        while not ended.is_set():
            for signal_number, seconds in ((signal.SIGSTOP, 0.18), (signal.SIGCONT, 0.02)):
                for process in schedulers:
                    process.send_signal(signal_number)
                ended.wait(seconds)
        for process in schedulers:
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
