"""Which kind of host this is."""

from pathlib import Path

from appliance.deploy.host.kind import HostKind
from appliance.deploy.host.nixos_kind import NixosKind
from appliance.deploy.host.systemd_kind import SystemdKind


def kind_of_this_host(services) -> HostKind:
    """NixOS has /etc/NIXOS, whatever else is installed."""
    return NixosKind(services) if Path("/etc/NIXOS").exists() else SystemdKind(services)
