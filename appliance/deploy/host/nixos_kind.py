"""NixOS: the system profile is what the host boots into, and switch-to-configuration makes a generation run."""

import os
from pathlib import Path

from appliance.deploy.host.kind import TARGET, units_of
from appliance.deploy.host.systemctl import call
from appliance.errors import CheckFailed

SWITCH_LIMIT_S = 3900.0
"""`switch-to-configuration test` returns when the first start of every unit has ended (docs/nixos.md)."""
INCOMPLETE = 4
"""Its exit code when the generation is active, and a unit of it failed: then the gate says which, with its log."""


class NixosKind:
    """See HostKind. `root` is where the host's file system is; `services` a Systemctl."""

    name = "nixos"

    def __init__(self, services, root: Path = Path("/")):
        self._services = services
        self._profile = root / "nix/var/nix/profiles/system"
        self._system = root / "run/current-system"

    def running(self) -> str | None:
        return str(self._system.resolve()) if self._system.exists() else None

    def boot_default(self) -> str | None:
        return str(self._profile.resolve()) if self._profile.exists() else None

    def activate(self, generation: str, former: str | None) -> None:
        switch(generation, "test")

    def make_boot_default(self, generation: str) -> None:
        self._set_profile(generation)
        switch(generation, "boot")

    def go_back(self, former: str | None, former_boot: str | None, tried: str) -> None:
        if former is None or former_boot is None:
            raise CheckFailed("the host had no generation before; expected /run/current-system and the system profile")
        only_tried = sorted(set(units_of(tried)) - set(units_of(former)))
        if self.boot_default() != former_boot:
            self._set_profile(former_boot)
        switch(former_boot, "boot")  # also where the profile was right: the boot loader may have been half written
        self._services.stop(only_tried, 3.0)
        switch(former, "test")
        if units_of(former):
            self._services.start([TARGET])

    def _set_profile(self, generation: str) -> None:
        done = call(["nix-env", "--profile", str(self._profile), "--set", generation])
        if done.returncode != 0:
            raise CheckFailed(f"nix-env --set {generation}: {done.stderr.strip()}")
        os.sync()


def switch(generation: str, action: str) -> None:
    """Run a generation's own switch-to-configuration. Raises CheckFailed with the end of what it said."""
    done = call([f"{generation}/bin/switch-to-configuration", action], SWITCH_LIMIT_S)
    if done.returncode not in (0, INCOMPLETE):
        said = (done.stderr or done.stdout).strip()[-600:]
        raise CheckFailed(f"switch-to-configuration {action} of {generation} ended with {done.returncode}: {said}")
