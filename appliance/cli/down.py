"""`appliance down`"""

from pathlib import Path

import click

from appliance.cli.options import json_option, state_option


@click.command()
@state_option
@json_option
def command(state_dir: Path, as_json: bool) -> None:
    """Stop what `up` runs, or clean up after an `up` that was killed. With --json: the run as it ended, or null."""
    from appliance.cli.output import say, step
    from appliance.cli.run_progress import RunProgress
    from appliance.supervisor.background import stop

    with step() as current:
        done = stop(state_dir, RunProgress(current).update)
    if not as_json:
        click.echo(done)
        return
    from appliance.supervisor.state import StateDirectory

    say(done)
    ended = StateDirectory(state_dir).read()
    click.echo("null" if ended is None else ended.to_json().rstrip("\n"))
