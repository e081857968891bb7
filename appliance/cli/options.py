"""Options that several verbs share."""

from pathlib import Path

import click

from appliance.paths import state_directory
from appliance.plan.ports import DEFAULT_BASE, SPAN

plan_argument = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print the document, and nothing else, on stdout.")
state_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=state_directory,
    show_default="$APPLIANCE_STATE_DIR or ~/.local/state/appliance",
    help="Folder of the run's state and logs; one run holds it at a time.",
)
topology_option = click.option(
    "--topology",
    type=click.Choice(["pd", "replicas", "single"]),
    default="pd",
    show_default=True,
    help="pd: prefill and decode apart; replicas: one aggregated worker a NUMA node; single: one worker.",
)
base_port_option = click.option(
    "--base-port",
    type=click.IntRange(1024, 65536 - SPAN),
    default=DEFAULT_BASE,
    show_default=True,
    help=f"First of the {SPAN} ports that a plan may use.",
)
