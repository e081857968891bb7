"""`appliance recon engine`: what it is asked for, and how its report is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from appliance.cli.output import Step
    from appliance.documents import EngineReport, ModelReport
    from appliance.engines.sglang.recon.family import Family
    from appliance.recon.engine.arch import Arch

arch_option = click.option(
    "--arch", metavar="ARCH", help="GPU architecture to report for, such as sm_120 [default: this machine's]."
)
family_option = click.option(
    "--family", metavar="FAMILY", help="Model family to report for: deepseek_v4, generic [default: the model's]."
)


def engine_options(command: Callable) -> Callable:
    """The options of `recon engine`."""
    return arch_option(family_option(command))


def read(arch: str | None, family: str | None, model: str | None) -> EngineReport:
    """The report that the options ask for, with progress on stderr. Raises ApplianceError in one line."""
    from appliance.cli.output import step
    from appliance.recon.engine.local_arch import local_arch
    from appliance.recon.model.inspect import Wanted, inspect

    of_model = None if model is None else inspect(model, Wanted())
    with step() as shown:
        return report(shown, arch, family, local_arch, lambda: of_model)


def report(
    shown: Step,
    arch: str | None,
    family: str | None,
    its_arch: Callable[[], Arch],
    its_model: Callable[[], ModelReport | None],
    wait_s: float = 0.0,
) -> EngineReport:
    """The report for `arch` and `family`, and where they are None for what the callables come back with.

    They may raise Absent, and may wait up to `wait_s`.
    """
    from appliance.cli.output import say
    from appliance.engines.sglang.recon.family import GENERIC, load, of_architecture
    from appliance.recon.engine.arch import Arch
    from appliance.recon.engine.full import full_report

    wanted_arch = Arch.parse(arch) if arch else None
    wanted_family = load(family) if family else None

    def table() -> Family:
        model = its_model() if wanted_family is None or wanted_family.name == GENERIC else None
        found = wanted_family or load(of_architecture(model.architecture) if model else GENERIC)
        return found.of_class(model.architecture) if model else found

    finished = []
    problems: dict[str, list[str]] = {}
    shown.update("reading the engine")

    def done(name, outcome) -> None:
        finished.append(name)
        shown.update("reading the engine", f": {len(finished)} probes back, {name} last")
        if outcome.problem:
            problems.setdefault(outcome.problem, []).append(name)

    found = full_report(table, lambda: wanted_arch or its_arch(), done, wait_s=wait_s)
    for problem, names in problems.items():
        say(f"{', '.join(names)}: {problem}")
    return found


def show(report: EngineReport, as_json: bool) -> None:
    """Print the report: the document, or tables for people."""
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        from appliance.cli.engine_table import lines

        click.echo("\n".join(lines(report)))
