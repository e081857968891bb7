"""What `bench serve` shows: progress and finished cells on stderr, the record's table on stdout."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table

from appliance.bench.serve.run import Listener
from appliance.cli.output import results, say, step
from appliance.cli.run_progress import RunProgress
from appliance.documents import BenchRecord, Cell

COLUMNS = ["workload", "done", "tok/s out", "TTFT p50 / p99", "TPOT p50", "of its limit"]


@contextmanager
def listening() -> Iterator[Listener]:
    """A Listener that shows a run while the block runs."""
    with step() as current:
        yield Listener(
            on_step=current.update,
            on_run=RunProgress(current).update,
            on_cell=lambda cell: say(f"{cell.topology}: {' | '.join(row(cell))}"),
        )


def row(cell: Cell) -> list[str]:
    """A cell as the texts of its table row, in the order of COLUMNS: medians, with the spread of the throughput."""

    def figure(name: str) -> str:
        found = cell.figures.get(name)
        return "-" if found is None else f"{found.median:.1f}"

    output = cell.figures.get("output tok/s")
    spread = f" ({output.least:.1f}-{output.most:.1f})" if output and output.least != output.most else ""
    nearest = max(cell.limits, key=lambda limit: limit.share, default=None)
    return [
        cell.workload.words(),
        f"{cell.completed}/{cell.requests}",
        figure("output tok/s") + spread,
        f"{figure('TTFT p50')} / {figure('TTFT p99')}",
        figure("TPOT p50"),
        "-" if nearest is None else f"{nearest.share:.1%} ({nearest.binds})",
    ]


def show(record: BenchRecord, place: Path) -> None:
    """Print the record's cells and what must be known of them."""
    if record.simulated:
        results.print("SIMULATED: from a latency profile, not from an engine")
    for topology in record.asked.topologies:
        results.print(f"{topology}, started {record.topologies[topology].starts} times")
        table = Table(*COLUMNS, box=None, pad_edge=False)
        for cell in record.cells:
            if cell.topology == topology:
                table.add_row(*row(cell))
        results.print(table)
        results.print()
    results.print(f"milliseconds; medians of {record.asked.repetitions} repetitions, least and most of the throughput")
    if record.stamp.missing:
        results.print(f"UNSTAMPED, and so not comparable: {', '.join(record.stamp.missing)} not known")
    for remark in record.remarks:
        results.print(f"note: {remark}")
    results.print(f"record: {place}")
