"""`appliance recon`"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from appliance.cli.options import json_option
from appliance.cli.recon_machine import from_option, host_option, models_option
from appliance.cli.recon_model import model_options
from appliance.cli.recon_model import run as run_model


@click.command()
@click.argument("what", type=click.Choice(["all", "model", "engine", "machine"]), default="all")
@click.argument("reference", metavar="[REF]", required=False)
@click.option("--model", "model_dir", type=click.Path(path_type=Path), help="Model folder, for the model's report.")
@from_option
@host_option
@models_option
@json_option
@model_options
def command(
    what: str,
    reference: str | None,
    model_dir: Path | None,
    from_file: Path | None,
    host: str | None,
    model_roots: tuple[str, ...],
    as_json: bool,
    **model_wanted,
) -> None:
    """Report the model, the engine and the machine as JSON: one document, or all by name.

    `recon model REF` reports a model folder, a hub id (org/name) or a saved report, and `recon machine` this machine,
    one over ssh or a pasted text; both for a person or with --json.
    """
    from appliance.cli import recon_machine
    from appliance.recon.engine import engine_report
    from appliance.recon.machine.children import end_all, ended_by_sigterm
    from appliance.recon.model import model_report

    if what == "model" and reference is not None:
        sys.exit(run_model(reference, as_json, **model_wanted))
    if reference is not None:
        raise click.UsageError(f"recon {what} takes no REF, found {reference!r}")
    if any(model_wanted.values()):
        raise click.UsageError("--revision, --tp, --ep, --claim, --hash and --against belong to recon model REF")
    if what == "machine":
        with ended_by_sigterm():
            report = recon_machine.read(from_file, host, model_roots)
        recon_machine.show(report, as_json)
        return
    if what == "model" and model_dir is None:
        raise click.UsageError("recon model needs REF, or --model FOLDER")
    wanted = {"machine": lambda: recon_machine.read(from_file, host, model_roots), "engine": engine_report}
    if model_dir is not None:
        wanted["model"] = lambda: model_report(model_dir)
    if what != "all":
        click.echo(wanted[what]().to_json(), nl=False)
        return
    with ended_by_sigterm(), ThreadPoolExecutor() as pool:
        reports = {name: pool.submit(report) for name, report in wanted.items()}
        try:
            documents = {name: report.result().model_dump(mode="json") for name, report in reports.items()}
        except BaseException:
            end_all()  # the pool waits for its threads, and these for their children
            raise
    click.echo(json.dumps(documents, indent=2))
