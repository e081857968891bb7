"""`appliance up`"""

from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import json_option, plan_argument, state_option
from appliance.documents import Plan


@click.command()
@plan_argument
@state_option
@click.option("--detach", is_flag=True, help="Return once the plan serves; it goes on in the background.")
@json_option
def command(plan_file: Path, state_dir: Path, detach: bool, as_json: bool) -> None:
    """Run PLAN on this machine until Ctrl-C: start its workers and router, watch them, stop them.

    --json goes with --detach: the run as it stands once it serves.
    """
    if as_json and not detach:
        raise click.UsageError("--json needs --detach: in the foreground nothing is printed at the end")
    interruptible()
    from appliance.cli.output import say, step
    from appliance.cli.run_progress import RunProgress
    from appliance.supervisor.background import start_in_background
    from appliance.supervisor.foreground import serve

    plan = Plan.read(plan_file)
    with step() as current:
        shown = RunProgress(current)
        if detach:
            state = start_in_background(plan, state_dir, shown.update)
        else:
            serve(plan, state_dir, shown.update, on_recovery=say)
    if detach:
        if as_json:
            click.echo(state.to_json(), nl=False)
        say(f"stop with: appliance down --state-dir {state_dir}")
