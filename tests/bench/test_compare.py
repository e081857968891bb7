"""Statistics of comparisons, on SIMULATED records."""

import pytest

from appliance.bench.compare import compare
from appliance.documents import BenchRecord, Slo
from appliance.documents.model import ModelFile
from appliance.errors import InputError
from tests.helpers.bench_records import simulated_record


def test_two_runs_of_the_same_profile_do_not_differ():
    found = compare(simulated_record(seed=1), simulated_record(seed=2), threshold=0.05)
    wrong = [figure for figure in found.figures if figure.verdict != "same"]
    assert len(wrong) <= 0.05 * len(found.figures)
    assert found.unlike == [] and found.regressions() == []


def test_a_slower_run_is_a_regression_and_the_way_back_is_none():
    fast, slow = simulated_record(seed=1, repetitions=5), simulated_record(seed=2, slower=1.3, repetitions=5)
    assert len(compare(fast, slow, 0.05).regressions()) > 100
    assert {figure.figure for figure in compare(fast, slow, 0.05).regressions()} >= {
        "output tok/s",
        "TTFT p50",
        "TPOT p50",
    }
    assert compare(slow, fast, 0.05).regressions() == []
    assert any(figure.verdict == "better" for figure in compare(slow, fast, 0.05).figures)


def test_what_is_worse_by_less_than_the_threshold_is_no_regression():
    fast, slow = simulated_record(seed=1, repetitions=5), simulated_record(seed=2, slower=1.1, repetitions=5)
    found = compare(fast, slow, threshold=0.3)
    assert any(figure.verdict == "worse" for figure in found.figures)
    assert found.regressions() == []


def test_of_what_was_measured_once_nothing_is_said():
    found = compare(simulated_record(repetitions=1), simulated_record(slower=2.0, repetitions=1), 0.05)
    assert {figure.verdict for figure in found.figures} == {"not comparable"}
    assert found.regressions() == []


def test_unlike_configurations_are_told():
    other = simulated_record()
    changed = other.model_copy(
        update={"stamp": other.stamp.model_copy(update={"driver": "590.1", "closure": "1" * 64})}
    )
    assert compare(other, changed, 0.05).unlike == ["driver: 580.0 / 590.1", f"closure: {'0' * 64} / {'1' * 64}"]


def test_cells_that_only_one_record_has_are_named():
    found = compare(simulated_record(), simulated_record(topologies=("pd",)), 0.05)
    assert any(line.startswith("single: ") for line in found.only_in_base) and found.only_in_other == []


def test_another_model_and_another_machine_are_told():
    one = simulated_record()
    files = [ModelFile(name="model.safetensors", size=1, sha256="a" * 64)]
    other = one.model_copy(
        update={
            "machine": one.machine.model_copy(update={"hostname": "elsewhere"}),
            "model": one.model.model_copy(update={"files": files}),
        }
    )
    told = compare(one, other, 0.05).unlike
    assert [line.split(":")[0] for line in told] == ["machine", "model's files"]


def with_workloads(record: BenchRecord, **changes) -> BenchRecord:
    """The record as if its workloads had been others."""
    cells = [cell.model_copy(update={"workload": cell.workload.model_copy(update=changes)}) for cell in record.cells]
    return record.model_copy(update={"cells": cells})


def test_goodput_is_compared_under_one_objective_only():
    other = with_workloads(simulated_record(), slo=Slo(ttft_ms=1.0, tpot_ms=1.0))
    found = compare(simulated_record(), other, 0.05)
    assert [line.split(":")[0] for line in found.unlike] == ["SLO"]
    assert "goodput" not in {figure.figure for figure in found.figures}


def with_failures(record: BenchRecord) -> BenchRecord:
    """The record as if two requests of each repetition had failed, without a trace in any latency."""

    def broken(cell):
        changes = [each.model_copy(update={"completed": each.completed - 2}) for each in cell.repetitions]
        return cell.model_copy(update={"repetitions": changes})

    return record.model_copy(update={"cells": [broken(cell) for cell in record.cells]})


def test_failures_are_a_regression_however_fast_the_rest_was():
    found = compare(simulated_record(), with_failures(simulated_record()), 0.05)
    assert {figure.figure for figure in found.regressions()} == {"failed"}
    assert len(found.regressions()) == len(simulated_record().cells)


def test_the_noise_says_how_small_a_change_could_have_been_seen():
    found = compare(simulated_record(seed=1, repetitions=5), simulated_record(seed=2, repetitions=5, slower=1.3), 0.05)
    measured = [figure for figure in found.figures if figure.figure == "TPOT p50"]
    assert all(0 < figure.noise < 0.15 for figure in measured)
    assert all(abs(figure.change - 0.3) < figure.noise + 0.1 for figure in measured)


def unstamped(record: BenchRecord) -> BenchRecord:
    return record.model_copy(update={"stamp": record.stamp.model_copy(update={"missing": ["the driver's version"]})})


def test_an_unstamped_record_is_refused():
    with pytest.raises(InputError, match="the second record is unstamped .the driver's version not known."):
        compare(simulated_record(), unstamped(simulated_record()), 0.05)


def test_a_simulated_record_is_not_compared_with_a_measured_one():
    with pytest.raises(InputError, match="one record is simulated"):
        compare(simulated_record(), simulated_record(simulated=False), 0.05)


def test_records_without_a_common_cell_are_refused():
    with pytest.raises(InputError, match="share no cell"):
        compare(simulated_record(topologies=("pd",)), simulated_record(topologies=("single",)), 0.05)
