"""The command line, thin: each verb is one module, imported only when it is called."""

import sys

import click

from appliance.cli.lazy import LazyGroup
from appliance.errors import ApplianceError

VERBS = {
    "recon": "Report the machine, the model and the engine.",
    "plan": "Turn the three reports into a plan.",
    "preflight": "Check what is known to go wrong, before hours are lost.",
    "fetch": "Bring a checkpoint here, every file verified.",
    "up": "Run a plan on this machine.",
    "down": "Stop what `up` runs.",
    "status": "Show what `up` runs.",
    "launch": "Become one worker of a plan (exec).",
    "deploy": "Bring hosts to a plan, and back when the service is ill.",
    "verify": "Prove that what runs is what was planned, and right.",
    "bench": "Measure side by side, with provenance.",
    "demo": "Prefill and decode on this machine, end to end, with a tiny model.",
    "schema": "Print the JSON Schema of a document.",
}
HIDDEN = ["deploy-host"]
"""What one part of the appliance asks of another on a host."""


@click.group(
    cls=LazyGroup,
    commands_of=VERBS,
    hidden=HIDDEN,
    module="appliance.cli.{}",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="appliance")
def cli() -> None:
    """One machine with many GPUs as one serving appliance.

    Exit codes: 0 done; 1 something checked does not hold; 2 bad usage or unreadable input; 3 a probe could not
    complete.
    """


def main() -> None:
    """Entry point: errors meant for the user become one message and their exit code."""
    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="replace")  # names of files need not be text, nor a terminal know all letters
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ApplianceError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:
            raise
        click.echo(f"error: the output cannot be written ({error.strerror})", err=True)
        sys.exit(1)
