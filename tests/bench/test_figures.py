from appliance.bench.figures import FIGURES, figures_of
from tests.helpers.bench_records import simulated_record


def test_a_figure_is_the_median_with_the_least_and_the_most():
    cell = simulated_record(repetitions=3).cells[0]
    seen = sorted(repetition.output_tokens_per_s for repetition in cell.repetitions)
    found = figures_of(cell.repetitions)["output tok/s"]
    assert (found.least, found.median, found.most) == tuple(round(value, 4) for value in seen)


def test_what_no_repetition_has_is_no_figure():
    found = figures_of(simulated_record(topologies=("single",)).cells[0].repetitions)
    assert "KV transfer" not in found and "acceptance length" not in found
    assert "TTFT p50" in found


def test_a_repetition_whose_requests_all_failed_has_no_latency():
    cell = simulated_record(topologies=("single",)).cells[0]
    failed = cell.repetitions[0].model_copy(update={"completed": 0, "failures": {"refused": 4}})
    found = figures_of([failed])
    assert "TTFT p50" not in found and found["failed"].median == failed.requests


def test_each_figure_says_which_way_is_better():
    assert {kind.better for kind in FIGURES.values()} == {"higher", "lower"}
