"""`appliance recon machine`: which machine is asked, and how its report is shown."""

import sys
from pathlib import Path

import click

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


def read(from_file: Path | None, host: str | None, model_roots: tuple[str, ...]) -> MachineReport:
    """The report of the machine that the options name. Raises ApplianceError in one line."""
    if from_file is not None and host is not None:
        raise click.UsageError("--from and --host exclude each other: expected one machine")
    roots = [root if host else str(Path(root).absolute()) for root in model_roots]
    if from_file is not None:
        from appliance.recon.machine.pasted import read_file, report_from

        if str(from_file) == "-":
            return report_from(sys.stdin.buffer.read(), "stdin")
        return report_from(read_file(from_file), str(from_file))
    if host is not None:
        from appliance.cli.output import say
        from appliance.recon.machine.remote.ssh import report_from_host

        return report_from_host(host, roots, say=say)
    return here(roots)


def here(model_roots: list[str]) -> MachineReport:
    """This machine's report, with progress on stderr."""
    from appliance.cli.output import say, step
    from appliance.recon.machine.report import report_of
    from appliance.recon.machine.source import LocalSource

    finished = []
    with step() as shown:
        shown.update("reading this machine")

        def done(name, outcome) -> None:
            finished.append(name)
            shown.update("reading this machine", f": {len(finished)} probes back, {name} last")
            if outcome.problem:
                say(f"{name}: {outcome.problem}")

        return report_of(LocalSource(), model_roots, done=done)


def show(report: MachineReport, as_json: bool) -> None:
    """Print the report: the document, or tables for people."""
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        from appliance.cli.machine_table import lines

        click.echo("\n".join(lines(report)))
