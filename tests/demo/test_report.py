from appliance.demo.report import row
from appliance.documents import Distribution, ServeCell


def test_a_row_counts_failures():
    some = Distribution(mean=1.0, p50=2.0, p90=3.0, p99=4.04)
    cell = ServeCell(
        concurrency=4,
        requests=24,
        completed=23,
        input_tokens=1,
        output_tokens=1,
        duration_s=1.0,
        output_tokens_per_s=186.54,
        ttft_ms=some,
        tpot_ms=some,
        itl_ms=some,
    )
    assert row(cell) == ["4", "23 of 24", "2.0 / 4.0", "2.0 / 4.0", "2.0 / 4.0", "186.5"]
