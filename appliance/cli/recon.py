"""`appliance recon`"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from appliance.cli.options import json_option
from appliance.cli.recon_engine import engine_options


@click.command()
@click.argument("what", type=click.Choice(["all", "model", "engine", "machine"]), default="all")
@click.option("--model", "model_dir", type=click.Path(path_type=Path), help="Model folder, for the model's report.")
@engine_options
@json_option
def command(what: str, model_dir: Path | None, arch: str | None, family: str | None, as_json: bool) -> None:
    """Report the model, the engine and the machine as JSON: one document, or all by name."""
    from appliance.cli import recon_engine
    from appliance.recon.children import end_all
    from appliance.recon.machine import machine_report
    from appliance.recon.model import model_report

    if what == "engine":
        recon_engine.show(recon_engine.read(arch, family, model_dir), as_json)
        return
    if what == "model" and model_dir is None:
        raise click.UsageError("recon model needs --model FOLDER")
    wanted = {} if model_dir is None else {"model": lambda: model_report(model_dir)}  # first: its errors say most
    wanted |= {"machine": machine_report, "engine": lambda: recon_engine.read(arch, family, model_dir)}
    if what != "all":
        click.echo(wanted[what]().to_json(), nl=False)
        return
    with ThreadPoolExecutor() as pool:
        reports = {name: pool.submit(report) for name, report in wanted.items()}
        try:
            documents = {name: report.result().model_dump(mode="json") for name, report in reports.items()}
        except BaseException:
            end_all()  # the pool waits for its threads, and these for their children
            raise
    click.echo(json.dumps(documents, indent=2))
