"""A systemd distribution with Nix: a profile of its own, whose units are linked into /etc/systemd/system.

What the host boots into is the profile: the links in /etc lead through it, so that one rename changes all of them. A
generation that is only tried has its units in /run, in the folder that systemd prefers to /etc; a power cut takes them.
"""

import os
import shutil
from pathlib import Path

from appliance.deploy.host.kind import TARGET, UNITS, units_of
from appliance.deploy.host.systemctl import call
from appliance.errors import CheckFailed

DRAIN_S = 90.0
HURRY_S = 3.0
"""Patience with units of a generation that is given up: nobody is to wait for what an ill service still answers."""
WANTED_BY = "multi-user.target.wants"


class SystemdKind:
    """See HostKind. `root` is where the host's file system is; `services` a Systemctl."""

    name = "systemd"

    def __init__(self, services, root: Path = Path("/")):
        self._services = services
        self._profile = root / "nix/var/nix/profiles/sglang-appliance"
        self._etc = root / "etc/systemd/system"
        # of all folders that are gone at the next boot the only one that wins over /etc (man systemd.unit)
        self._trial = root / "run/systemd/system.control"
        self._mark = root / "run/appliance-deploy/generation"

    def running(self) -> str | None:
        return str(self._mark.readlink()) if self._mark.is_symlink() else self.boot_default()

    def boot_default(self) -> str | None:
        return str(self._profile.resolve()) if self._profile.exists() else None

    def activate(self, generation: str, former: str | None) -> None:
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        link(generation, self._mark)
        accounts(generation)
        if former:
            self._services.stop(units_of(former), DRAIN_S)
        self._trial.mkdir(parents=True, exist_ok=True)
        for name in [*units_of(generation), TARGET]:
            link(f"{generation}/{UNITS}/{name}", self._trial / name)
        self._services.reload()
        self._services.reset_failed(units_of(generation))
        self._services.start([TARGET])

    def make_boot_default(self, generation: str) -> None:
        units = [*units_of(generation), TARGET]
        self._link_units(units)
        self._set_profile(generation)
        self._unlink_units(keep=units)
        self._forget_trial()
        self._services.reload()

    def go_back(self, former: str | None, former_boot: str | None, tried: str) -> None:
        units = [*units_of(former_boot), TARGET] if former_boot else []
        if self._mark.is_symlink():
            self._services.stop([TARGET, *units_of(tried)], HURRY_S)
        self._set_profile(former_boot)
        self._link_units(units)
        self._unlink_units(keep=units)
        self._forget_trial()
        self._services.reload()
        if former_boot:
            accounts(former_boot)
            self._services.reset_failed(units_of(former_boot))
            self._services.start([TARGET])

    def remove(self) -> None:
        """Stop the appliance and take everything of it off the host but the weights and the history."""
        running = self.running()
        if running:
            self._services.stop([TARGET, *units_of(running)], DRAIN_S)
        self._set_profile(None)
        self._unlink_units(keep=[])
        self._forget_trial()
        self._services.reload()

    def _set_profile(self, generation: str | None) -> None:
        if self.boot_default() == generation:
            return
        if generation is None:
            for file in self._profile.parent.glob(f"{self._profile.name}*"):
                file.unlink()
            return
        done = call(["nix-env", "--profile", str(self._profile), "--set", generation])
        if done.returncode != 0:
            raise CheckFailed(f"nix-env --set {generation}: {done.stderr.strip()}")
        os.sync()

    def _link_units(self, units: list[str]) -> None:
        for name in units:
            link(f"{self._profile}/{UNITS}/{name}", self._etc / name)
        if units:
            (self._etc / WANTED_BY).mkdir(exist_ok=True)
            link(f"../{TARGET}", self._etc / WANTED_BY / TARGET)

    def _unlink_units(self, keep: list[str]) -> None:
        for file in self._etc.glob("sglang-*"):
            if file.name not in keep and file.is_symlink() and str(file.readlink()).startswith(f"{self._profile}/"):
                file.unlink()
        if not keep:
            (self._etc / WANTED_BY / TARGET).unlink(missing_ok=True)

    def _forget_trial(self) -> None:
        for file in self._trial.glob("sglang-*"):
            if file.is_symlink():
                file.unlink()
        shutil.rmtree(self._mark.parent, ignore_errors=True)


def link(to: str, at: Path) -> None:
    """Make `at` a link to `to`, in place of what was there, at once."""
    scratch = at.with_name(f".{at.name}.new")
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(to)
    scratch.replace(at)


def accounts(generation: str) -> None:
    """Make the user and the folders that a generation's units need. Raises CheckFailed."""
    for program, folder in (("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles", "tmpfiles.d")):
        file = Path(generation) / "etc" / folder / "sglang-appliance.conf"
        if not file.exists():
            continue
        words = [program, *(["--create"] if program == "systemd-tmpfiles" else []), str(file)]
        done = call(words)
        if done.returncode != 0:
            raise CheckFailed(f"{program} {file}: {done.stderr.strip()}")
