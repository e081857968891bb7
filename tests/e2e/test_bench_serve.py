"""Topologies under load on the CPU: real engines, NIXL, router and load generator; no statement on speed."""

import signal

import pytest

from appliance.documents import BenchRecord
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
