"""`appliance plan`"""

from pathlib import Path

import click

from appliance.cli.options import base_port_option, topology_option


@click.command()
@click.option("--model", "model_dir", type=click.Path(path_type=Path), required=True, help="Model folder.")
@click.option("--served-name", help="Name that requests use for the model.  [default: the folder's name]")
@topology_option
@base_port_option
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Write the plan (JSON) to this file as well.")
def command(
    model_dir: Path, served_name: str | None, topology: str, base_port: int, form: str, output: Path | None
) -> None:
    """Plan how to serve a model folder on this machine's CPUs. (Planning for GPUs is not built yet.)"""
    from appliance.cli.output import results
    from appliance.cli.plan_table import show_plan
    from appliance.plan.cpu import plan_on_cpu
    from appliance.plan.ports import PortRange
    from appliance.recon.engine import engine_report
    from appliance.recon.machine import machine_report
    from appliance.recon.model import model_report

    plan = plan_on_cpu(
        topology,
        model_report(model_dir),
        machine_report(),
        engine_report(),
        served_name=served_name or model_dir.resolve().name,
        ports=PortRange(base_port),
    )
    if output is not None:
        plan.write(output)
    if form == "json":
        click.echo(plan.to_json(), nl=False)
    else:
        show_plan(results, plan)
