"""`appliance down`"""

from pathlib import Path

import click

from appliance.cli.options import state_option


@click.command()
@state_option
def command(state_dir: Path) -> None:
    """Stop what `up` runs, or clean up after an `up` that was killed."""
    from appliance.cli.run_progress import RunProgress
    from appliance.supervisor.background import stop

    with RunProgress() as shown:
        done = stop(state_dir, shown.update)
    click.echo(done)
