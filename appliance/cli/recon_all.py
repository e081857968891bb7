"""`appliance recon`: machine, engine and model side by side, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from appliance.cli.recon_machine import Wanted

if TYPE_CHECKING:
    from appliance.cli.output import Step
    from appliance.documents import EngineReport, MachineReport, ModelReport, Recon
    from appliance.recon.together import Reports

DOING = "looking at"
WAIT_S = 120.0
"""How long the engine's report waits for a fact of another: longer than a machine asked over ssh may take."""


class Lane:
    """A report's own place in the one line of progress that several share."""

    def __init__(self, shown: Step, lanes: dict[str, str], name: str):
        self._shown, self._lanes, self._name = shown, lanes, name
        lanes[name] = name

    def update(self, text: str, detail: str = "") -> None:
        """Show what this report does now beside what the others do."""
        self._lanes[self._name] = f"{self._name}{detail}"
        self._shown.update(DOING, f" {', '.join(self._lanes.values())}")


def read(machine: Wanted, model: str | None, arch: str | None, family: str | None) -> Recon:
    """The reports side by side, with progress on stderr. Raises ApplianceError in one line."""
    from appliance.cli import recon_engine, recon_machine
    from appliance.cli.output import say, step
    from appliance.hardware.gpu_model import compute_capability
    from appliance.recon.engine.arch import of_gpus
    from appliance.recon.model import inspect
    from appliance.recon.together import awaited, together

    with step() as shown:
        lanes: dict[str, str] = {}

        def machine_report(reports: Reports) -> MachineReport:
            return recon_machine.report(Lane(shown, lanes, "machine"), machine)

        def model_report(reports: Reports) -> ModelReport:
            lane = Lane(shown, lanes, "model")
            told = lambda what, done, total: lane.update(what, f": {what}, {100 * done // max(total, 1)} %")  # noqa: E731
            return inspect.inspect(model, inspect.Wanted(), told)

        def engine_report(reports: Reports) -> EngineReport:
            return recon_engine.report(
                Lane(shown, lanes, "engine"),
                arch,
                family,
                lambda: of_gpus([compute_capability(gpu) for gpu in awaited(reports, "machine", WAIT_S).gpus]),
                lambda: awaited(reports, "model", WAIT_S) if "model" in reports else None,
                WAIT_S,
            )

        calls = {"machine": machine_report, "engine": engine_report}
        found = together(calls if model is None else {**calls, "model": model_report})
    for name, problem in found.problems.items():
        say(f"{name}: {problem}")
    return found


def show(found: Recon, as_json: bool) -> None:
    """Print the reports: the document, or tables for people one after the other."""
    if as_json:
        click.echo(found.to_json(), nl=False)
        return
    from appliance.cli import recon_engine, recon_machine
    from appliance.cli.output import results
    from appliance.cli.recon_model_output import show_model

    shows = {
        "machine": lambda report: recon_machine.show(report, as_json=False),
        "model": lambda report: show_model(results, report),
        "engine": lambda report: recon_engine.show(report, as_json=False),
    }
    for name, shown in shows.items():
        report = getattr(found, name)
        if report is not None or name in found.problems:
            click.echo(f"\n== {name} ==")
            shown(report) if report is not None else click.echo(found.problems[name])
