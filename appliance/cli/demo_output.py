"""What the demo shows: progress on stderr, the record's tables on stdout."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table

from appliance.cli.output import progress, results, step
from appliance.cli.plan_table import show_plan
from appliance.cli.run_progress import RunProgress
from appliance.demo.report import COLUMNS, PERCENTILES, row
from appliance.demo.run import Listener
from appliance.documents import RunRecord


@contextmanager
def shown_demo() -> Iterator[Listener]:
    """A Listener that shows steps, the plan and the run's changes while the block runs."""
    with step() as current:
        yield Listener(
            on_plan=lambda plan: show_plan(progress, plan, with_reasons=False),
            on_step=current.update,
            on_run=RunProgress(current).update,
        )


def show_record(record: RunRecord, state_dir: Path, keep: bool) -> None:
    """Print checks and measurements, where the files are, and how to ask what was left serving."""
    for check in record.checks:
        results.print(f"{'held  ' if check.passed else 'FAILED'}  {check.name}: {check.evidence}")
    results.print()
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for cell in record.cells:
        table.add_row(*row(cell))
    results.print(table)
    results.print(PERCENTILES)
    for remark in record.remarks:
        results.print(f"note: {remark}")
    results.print(f"report: {state_dir}/report.md")
    results.print(f"record: {state_dir}/record.json")
    results.print(f"plan, with the reason for each argument: {state_dir}/plan.json")
    if keep:
        results.print(curl_line(record))
        results.print(f"stop with: appliance down --state-dir {state_dir}")


def curl_line(record: RunRecord) -> str:
    """A shell line that asks what was left serving for sixteen tokens."""
    body = json.dumps({"model": record.plan.model.served_name, "prompt": "Hello", "max_tokens": 16})
    url = f"{record.plan.endpoint()}/v1/completions"
    return f"curl --noproxy '*' {url} -H 'Content-Type: application/json' -d '{body}'"
