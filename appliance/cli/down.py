"""`appliance down`"""

from pathlib import Path

import click

from appliance.cli.options import state_option


@click.command()
@state_option
def command(state_dir: Path) -> None:
    """Stop what `up` runs, or clean up after an `up` that was killed."""
    from appliance.cli.output import step
    from appliance.cli.run_progress import RunProgress
    from appliance.supervisor.background import stop

    with step() as current:
        done = stop(state_dir, RunProgress(current).update)
    click.echo(done)
