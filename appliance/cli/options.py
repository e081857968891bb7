"""Options that several verbs share."""

from pathlib import Path

import click

from appliance.paths import state_directory

plan_argument = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print the document, and nothing else, on stdout.")
state_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=state_directory,
    show_default="$APPLIANCE_STATE_DIR or ~/.local/state/appliance",
    help="Folder of the run's state and logs; one run holds it at a time.",
)
