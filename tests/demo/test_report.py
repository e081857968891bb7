from appliance.demo.report import row
from tests.helpers.bench_records import simulated_record


def test_a_row_counts_failures():
    cell = simulated_record(topologies=("single",), repetitions=1).cells[0]
    measured = cell.repetitions[0].model_copy(update={"completed": 3, "output_tokens_per_s": 186.54})
    cell = cell.model_copy(update={"repetitions": [measured]})
    assert row(cell)[:2] == ["1", "3 of 4"]
    assert row(cell)[-1] == "186.5"
