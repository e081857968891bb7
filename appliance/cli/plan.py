"""`appliance plan`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import base_port_option


@click.command()
@click.option(
    "--from",
    "from_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Reports to plan from, as `recon --json` prints them; - is stdin.  [default: look at this machine]",
)
@click.option(
    "--machine",
    "machine_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A saved MachineReport, or pasted text as `recon machine --from` takes it.",
)
@click.option("--model", metavar="REF", help="Model folder, hub id (org/name) or saved ModelReport.")
@click.option("--engine", "engine_file", metavar="FILE", type=click.Path(path_type=Path), help="A saved EngineReport.")
@click.option(
    "--topology",
    type=click.Choice(["auto", "pd", "replicas", "single"]),
    default="auto",
    show_default=True,
    help="pd: prefill and decode apart; replicas: one worker a NUMA node; single: one worker. auto: the first "
    "of these that fits.",
)
@click.option("--context", type=click.IntRange(min=1), metavar="TOKENS", help="Longest request.  [default: what fits]")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Requests of that length at once.")
@click.option("--mtp", "draft_tokens", type=click.IntRange(1, 8), metavar="N", help="Draft N tokens by the MTP layer.")
@click.option("--gpus", metavar="LIST", help="Use these GPUs only: 0-3,6.")
@click.option("--gpu", "gpu_name", metavar="NAME", help="What the GPUs are, where the report does not say.")
@click.option(
    "--model-path",
    metavar="PATH",
    help="Where the model lies on the machine that serves.  [default: its folder; for a hub id a folder of its name "
    "in /var/lib/sglang-models]",
)
@click.option("--served-name", help="Name that requests use for the model.  [default: the model's own]")
@base_port_option
@click.option("--format", "form", type=click.Choice(["table", "json", "nix"]), default="table", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Write the plan (JSON) to this file as well.")
def command(
    from_file: Path | None,
    machine_file: Path | None,
    model: str | None,
    engine_file: Path | None,
    topology: str,
    context: int | None,
    concurrency: int | None,
    draft_tokens: int | None,
    gpus: str | None,
    gpu_name: str | None,
    model_path: str | None,
    served_name: str | None,
    base_port: int,
    form: str,
    output: Path | None,
) -> None:
    """Plan how to serve a model: who gets which GPUs, ports, arguments and environment, each with its reason.

    Exit code 1 where nothing fits, with what is lacking.
    """
    from appliance.cli import plan_inputs
    from appliance.cli.output import results
    from appliance.cli.plan_table import show_plan
    from appliance.plan.costs import Wanted
    from appliance.plan.gpu import Wishes
    from appliance.plan.make import make_plan
    from appliance.plan.nix_text import nix_text
    from appliance.plan.ports import PortRange

    found = plan_inputs.read(from_file, machine_file, model, engine_file)
    plan = make_plan(
        found,
        Wishes(
            topology=None if topology == "auto" else topology,
            sizes=Wanted(context, concurrency),
            draft_tokens=draft_tokens,
            only_gpus=None if gpus is None else plan_inputs.indices(gpus),
            gpu_name=gpu_name,
            model_path=model_path,
            served_name=served_name,
            ports=PortRange(base_port),
        ),
    )
    text = nix_text(plan) if form == "nix" else plan.to_json() if form == "json" else None
    if output is not None:
        plan.write(output)
    if text is None:
        show_plan(results, plan)
    else:
        sys.stdout.write(text)
