"""`appliance up`"""

from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import plan_argument, state_option
from appliance.documents import Plan


@click.command()
@plan_argument
@state_option
@click.option("--detach", is_flag=True, help="Return once the plan serves; it goes on in the background.")
def command(plan_file: Path, state_dir: Path, detach: bool) -> None:
    """Run PLAN on this machine until Ctrl-C: start its workers and router, watch them, stop them."""
    interruptible()
    from appliance.cli.output import say, step
    from appliance.cli.run_progress import RunProgress
    from appliance.supervisor.background import start_in_background
    from appliance.supervisor.foreground import serve

    plan = Plan.read(plan_file)
    with step() as current:
        shown = RunProgress(current)
        if detach:
            start_in_background(plan, state_dir, shown.update)
        else:
            serve(plan, state_dir, shown.update, on_recovery=say)
    if detach:
        say(f"stop with: appliance down --state-dir {state_dir}")
