"""`appliance status`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import json_option, state_option


@click.command()
@state_option
@json_option
def command(state_dir: Path, as_json: bool) -> None:
    """Show what `up` runs. Exit code 0 if all of it serves, 1 if not."""
    from appliance.supervisor.status import status

    found = status(state_dir)
    if found is None:
        click.echo("null" if as_json else f"nothing has run in {state_dir}")
        sys.exit(1)
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        show(found, state_dir)
    sys.exit(0 if found.serves() else 1)


def show(found, state_dir: Path) -> None:
    """Print a Status as a table for people."""
    from rich.table import Table

    from appliance.cli.output import results

    results.print(f"{found.phase}  {found.topology}  {found.model}  {found.endpoint}  since {found.started}")
    table = Table("process", "phase", "answers", "pid", "port", "RSS MiB", "restarts", box=None, pad_edge=False)
    for process in found.processes:
        table.add_row(
            process.name,
            process.phase,
            "yes" if process.answers else "no",
            str(process.pid or ""),
            str(process.port),
            str(process.resident_mib or ""),
            str(process.restarts),
        )
    results.print(table)
    for process in found.processes:
        if process.last_error and not found.error:
            results.print(f"{process.name} {process.last_error}")
    if found.error:
        results.print(f"error: {found.error}")
    results.print(f"logs: {state_dir}/logs")
