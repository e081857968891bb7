"""`appliance recon machine`: which machine is asked, and how its report is shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from appliance.cli.output import Step
    from appliance.documents import MachineReport

HERE = "this machine"

from_option = click.option(
    "--from",
    "from_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read pasted text (nvidia-smi topo -m, collect_env, ...) or a saved report; - is stdin.",
)
host_option = click.option(
    "--host", metavar="USER@HOST", help="Ask another machine by ssh; nothing is installed there."
)
models_option = click.option(
    "--models",
    "model_roots",
    metavar="FOLDER",
    multiple=True,
    help="Look for models in FOLDER too, besides the hub cache; may be given again.",
)


class Wanted(NamedTuple):
    """The machine that the options name."""

    from_file: Path | None
    host: str | None
    model_roots: tuple[str, ...]


def read(wanted: Wanted) -> MachineReport:
    """The report of the machine that the options name, with progress on stderr. Raises ApplianceError in one line."""
    from appliance.cli.output import step

    with step() as shown:
        return report(shown, wanted)


def report(shown: Step, wanted: Wanted) -> MachineReport:
    """The same, with its progress where it belongs."""
    from appliance.cli.output import say

    if wanted.from_file is not None and wanted.host is not None:
        raise click.UsageError("--from and --host exclude each other: expected one machine")
    roots = [root if wanted.host else str(Path(root).absolute()) for root in wanted.model_roots]
    if wanted.from_file is not None:
        from appliance.recon.machine.pasted import beginning, read_file, report_from

        if str(wanted.from_file) == "-":
            return report_from(beginning(sys.stdin.buffer), "stdin")
        return report_from(read_file(wanted.from_file), str(wanted.from_file))
    if wanted.host is not None:
        from appliance.recon.machine.remote.ssh import report_from_host

        return report_from_host(wanted.host, roots, say=say)
    from appliance.recon.machine.report import report_of
    from appliance.recon.machine.source import LocalSource

    finished = []
    shown.update("reading this machine")

    def done(name, outcome) -> None:
        finished.append(name)
        shown.update("reading this machine", f": {len(finished)} probes back, {name} last")
        if outcome.problem:
            say(f"{name}: {outcome.problem}")

    return report_of(LocalSource(), roots, done=done)


def show(report: MachineReport, as_json: bool) -> None:
    """Print the report: the document, or tables for people."""
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        from appliance.cli.machine_table import lines

        click.echo("\n".join(lines(report)))
