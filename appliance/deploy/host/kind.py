"""What a switch asks of a host, whatever its distribution."""

from pathlib import Path
from typing import Literal, Protocol

from appliance.documents import Plan

PLAN = "etc/sglang-appliance/plan.json"
PROGRAM = "etc/sglang-appliance/package/bin/appliance"
UNITS = "etc/systemd/system"
TARGET = "sglang-appliance.target"


class HostKind(Protocol):
    """One kind of host. A generation is a store path with units, plan and program below etc/, as NixOS has them."""

    name: Literal["nixos", "systemd"]

    def running(self) -> str | None:
        """The generation whose units are loaded now, or None."""

    def boot_default(self) -> str | None:
        """The generation that the host boots into, or None."""

    def activate(self, generation: str, former: str | None) -> None:
        """Load and start `generation` in place of `former`; the boot default stays. Raises CheckFailed."""

    def make_boot_default(self, generation: str) -> None:
        """Make the generation that runs the one to boot into. Raises CheckFailed."""

    def go_back(self, former: str | None, former_boot: str | None, tried: str) -> None:
        """Whatever was reached of activating or keeping `tried`: run `former` again and boot into `former_boot`.

        Can be called again after it was cut off. Raises CheckFailed.
        """


def units_of(generation: str) -> list[str]:
    """The services of the appliance in a generation."""
    return sorted(file.name for file in (Path(generation) / UNITS).glob("sglang-*.service"))


def plan_of(generation: str) -> Plan | None:
    """The plan that a generation serves; None where it has no appliance. Raises InputError where it is no plan."""
    file = Path(generation) / PLAN
    return Plan.read(file) if file.exists() else None
