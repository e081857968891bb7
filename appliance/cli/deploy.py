"""`appliance deploy`"""

from pathlib import Path

import click

from appliance.cli.options import json_option


@click.command()
@click.argument("hosts", metavar="USER@HOST...", nargs=-1, required=True)
@click.option(
    "--generation",
    metavar="WHAT",
    help="What to deploy: a flake's output, such as .#gpu-box, or a path in the store.",
)
@click.option("--build-on", type=click.Choice(["here", "host"]), default="here", show_default=True)
@click.option("--use-substitutes", is_flag=True, help="Let the host fetch from its own caches what they have.")
@click.option(
    "--stop",
    metavar="UNIT[=URL]",
    multiple=True,
    help="A service that holds the GPUs and gives way; URL answers 200 when it is well. May be given again.",
)
@click.option("--fetch", metavar="ORG/NAME@COMMIT", help="Bring this checkpoint to the plan's model folder first.")
@click.option(
    "--fetch-from", metavar="PLACE", help="FOLDER or USER@HOST:FOLDER, as the host sees it, instead of the hub."
)
@click.option("--fetch-rate", metavar="BYTES", help="Most bytes a second: 200M.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Token for a gated model, on this machine.")
@click.option("--golden", type=click.Path(path_type=Path), help="Answers that the new service has to give.")
@click.option(
    "--golden-tolerance", type=click.IntRange(min=0), default=0, show_default=True, help="How many may differ."
)
@click.option(
    "--gate-seconds", type=click.FloatRange(min=1), help="Time for start and checks.  [default: the plan's start + 300]"
)
@click.option(
    "--least-speed", type=click.FloatRange(0, 1), default=0.8, show_default=True, help="Share of the last good speed."
)
@click.option("--load-requests", type=click.IntRange(1, 10000), default=16, show_default=True)
@click.option("--load-at-once", type=click.IntRange(1, 1000), default=4, show_default=True)
@click.option("--load-tokens", type=click.IntRange(1, 4096), default=32, show_default=True)
@click.option(
    "--most-restarts",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Of a unit, before it is given up.",
)
@click.option("--confirm-seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="Time to confirm.")
@click.option("--skip", metavar="RULE=REASON", multiple=True, help="Leave a rule of preflight out.")
@click.option("--at-once", type=click.IntRange(min=1), default=8, show_default=True, help="Hosts after the first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only look.")
@click.option("--rollback", "verb", flag_value="rollback", help="Go back to what was deployed before.")
@click.option("--history", "verb", flag_value="history", help="Show what was deployed.")
@click.option("--status", "verb", flag_value="status", help="Show what runs, and whether a deploy goes on.")
@click.option("--remove", "verb", flag_value="remove", help="Take the appliance off; what gave way serves again.")
@json_option
def command(hosts: tuple[str, ...], **wanted) -> None:
    """Bring hosts to what a flake describes, and back where the service is ill.

    The first host is done alone, the others side by side; after a failure none is begun. Each host decides for itself:
    it goes back when a check does not hold, in time, or when nobody confirms.
    """
    from appliance.cli.deploy_run import Wanted, run

    run(list(dict.fromkeys(hosts)), Wanted(**wanted))
