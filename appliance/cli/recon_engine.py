"""`appliance recon engine`: what it is asked for, and how its report is shown."""

from collections.abc import Callable
from pathlib import Path

import click

from appliance.documents import EngineReport

arch_option = click.option(
    "--arch", metavar="ARCH", help="GPU architecture to report for, such as sm_120 [default: this machine's]."
)
family_option = click.option(
    "--family", metavar="FAMILY", help="Model family to report for: deepseek_v4, generic [default: the model's]."
)


def engine_options(command: Callable) -> Callable:
    """The options of `recon engine`."""
    return arch_option(family_option(command))


def read(arch: str | None, family: str | None, model: Path | None) -> EngineReport:
    """The report that the options ask for, with progress on stderr. Raises ApplianceError in one line."""
    from appliance.cli.output import say, step
    from appliance.engines.sglang.recon.family import GENERIC, load, of_model
    from appliance.recon.engine.arch import Arch
    from appliance.recon.engine.full import full_report
    from appliance.recon.engine.local_arch import local_arch

    wanted = Arch.parse(arch) if arch else local_arch()
    table = load(family or (of_model(model) if model else GENERIC))
    finished = []
    with step() as shown:
        shown.update("reading the engine")

        def done(name, outcome) -> None:
            finished.append(name)
            shown.update("reading the engine", f": {len(finished)} probes back, {name} last")
            if outcome.problem:
                say(f"{name}: {outcome.problem}")

        return full_report(table, wanted, done=done)


def show(report: EngineReport, as_json: bool) -> None:
    """Print the report: the document, or tables for people."""
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        from appliance.cli.engine_table import lines

        click.echo("\n".join(lines(report)))
