"""`appliance deploy-host`: the side of `deploy` that runs on the host. People call `deploy`."""

import signal
import sys
from pathlib import Path

import click

from appliance.documents.deploy import DeployRequest, DeployState
from appliance.errors import CheckFailed

folder_option = click.option(
    "--folder", type=click.Path(path_type=Path), default=None, help="Where journal and history are."
)


def host(folder: Path | None):
    """State, kind and service manager of this machine."""
    from appliance.deploy.host.detect import kind_of_this_host
    from appliance.deploy.host.state import FOLDER, HostState
    from appliance.deploy.host.systemctl import Systemctl

    services = Systemctl()
    return HostState(folder or FOLDER), kind_of_this_host(services), services


def switch(folder: Path | None):
    """The switch of this machine."""
    from appliance.deploy.host.gate import ServiceGate
    from appliance.deploy.host.switch import Interrupted, Switch

    def stopped(number, frame) -> None:
        raise Interrupted("the unit of the switch was stopped")

    signal.signal(signal.SIGTERM, stopped)
    state, kind, services = host(folder)
    return Switch(state, kind, services, ServiceGate(services), say=lambda text: print(text, flush=True))


@click.group(hidden=True)
def command() -> None:
    """The side of `deploy` that runs on the host."""


@command.command()
@folder_option
def start(folder: Path | None) -> None:
    """Take a request on stdin and switch in a unit that outlives this connection."""
    from appliance.deploy.host.unit import start_unit

    request = DeployRequest.parse(sys.stdin.read(), "stdin")
    state, _, _ = host(folder)
    state.prepare()
    start_unit(state, request)


@command.command()
@click.argument("id")
@folder_option
def run(id: str, folder: Path | None) -> None:
    """Switch as request ID on the disk asks for."""
    state, _, _ = host(folder)
    journal = switch(folder).run(DeployRequest.read(state.request_file(id)))
    sys.exit(0 if journal.step == "committed" else 1)


@command.command()
@folder_option
def recover(folder: Path | None) -> None:
    """Bring a switch that was cut off to its end."""
    journal = switch(folder).recover()
    click.echo(f"{journal.request.id}: {journal.step}" if journal else "nothing was ever deployed")


@command.command()
@click.argument("id")
@folder_option
def confirm(id: str, folder: Path | None) -> None:
    """Confirm deploy ID."""
    state, _, _ = host(folder)
    state.confirm(id)


@command.command()
@click.argument("id")
@folder_option
def follow(id: str, folder: Path | None) -> None:
    """Print the journal of deploy ID, one JSON document a line, whenever it changes, until the deploy has ended."""
    from appliance.deploy.host.follow import journals

    state, _, _ = host(folder)
    for journal in journals(state, id):
        click.echo(journal.model_dump_json())


@command.command()
@folder_option
def status(folder: Path | None) -> None:
    """Print how this host stands."""
    state, kind, _ = host(folder)
    document = DeployState(
        host_kind=kind.name,
        running=kind.running(),
        boot_default=kind.boot_default(),
        holder=state.holder(),
        journal=state.journal(),
    )
    click.echo(document.to_json(), nl=False)


@command.command()
@folder_option
def history(folder: Path | None) -> None:
    """Print the history of this host."""
    state, _, _ = host(folder)
    click.echo(state.history().to_json(), nl=False)


@command.command()
@folder_option
def remove(folder: Path | None) -> None:
    """Take the appliance off this host; what gave way for it is enabled and started again."""
    from appliance.deploy.host.remove import remove_from

    state, kind, services = host(folder)
    if kind.name != "systemd":
        raise CheckFailed("on NixOS the appliance is part of the system; expected to deploy a configuration without it")
    with state.locked("remove"):
        for line in remove_from(state, kind, services):
            click.echo(line)
