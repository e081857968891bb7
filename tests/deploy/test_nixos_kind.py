"""The NixOS kind over stand-ins of `switch-to-configuration` and `nix-env` that say what they were asked.

nixpkgs is not at hand in the tests, so no NixOS system is built; the order of profile, boot loader and activation is
what is shown.
"""

import pytest

from appliance.deploy.host import nixos_kind
from appliance.deploy.host.nixos_kind import NixosKind
from appliance.errors import CheckFailed
from tests.deploy.pretended_host import PretendedHost

SWITCH = """\
#!/bin/sh
echo "$(basename {system}) $1" >> {asked}
[ "$1" = test ] && ln -sfn {system} {root}/run/current-system
exit {code}
"""
NIX_ENV = """\
#!/bin/sh
echo "profile $(basename "$4")" >> {asked}
ln -sfn "$4" "$2"
"""


class Machine:
    """A folder with what the kind looks at."""

    def __init__(self, root, monkeypatch):
        self.root, self.asked_file = root, root / "asked"
        for folder in ("run", "nix/var/nix/profiles", "bin"):
            (root / folder).mkdir(parents=True)
        (root / "bin/nix-env").write_text(NIX_ENV.format(asked=self.asked_file))
        (root / "bin/nix-env").chmod(0o755)
        monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
        self.old, self.new = self.system("old"), self.system("new")
        (root / "run/current-system").symlink_to(self.old)
        (root / "nix/var/nix/profiles/system").symlink_to(self.old)
        self.kind = NixosKind(PretendedHost(), root)

    def system(self, name: str, code: int = 0) -> str:
        system = self.root / name
        (system / "bin").mkdir(parents=True, exist_ok=True)
        program = system / "bin/switch-to-configuration"
        program.write_text(SWITCH.format(system=system, asked=self.asked_file, root=self.root, code=code))
        program.chmod(0o755)
        return str(system)

    def asked(self) -> list[str]:
        return self.asked_file.read_text().splitlines()

    def stands(self) -> tuple[str, str]:
        return self.kind.running(), self.kind.boot_default()


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_trying_leaves_the_boot_default_and_keeping_sets_it_before_the_boot_loader(machine):
    machine.kind.activate(machine.new, machine.old)
    assert machine.stands() == (machine.new, machine.old)
    machine.kind.make_boot_default(machine.new)
    assert machine.stands() == (machine.new, machine.new)
    assert machine.asked() == ["new test", "profile new", "new boot"]


@pytest.mark.parametrize("kept", [False, True])
def test_the_way_back_restores_the_boot_loader_first_and_can_be_gone_twice(machine, kept):
    machine.kind.activate(machine.new, machine.old)
    if kept:
        machine.kind.make_boot_default(machine.new)
    for _ in range(2):
        machine.kind.go_back(machine.old, machine.old, machine.new)
        assert machine.stands() == (machine.old, machine.old)
    back = ["old boot", "old test"]
    assert machine.asked()[-4 if not kept else -5 :] == (["profile old"] if kept else []) + back + back


def test_a_system_that_cannot_be_activated_is_said_and_one_with_a_failed_unit_goes_to_the_gate(machine):
    machine.system("new", code=nixos_kind.INCOMPLETE)
    machine.kind.activate(machine.new, machine.old)
    machine.system("new", code=1)
    with pytest.raises(CheckFailed, match="switch-to-configuration test of .*/new ended with 1"):
        machine.kind.activate(machine.new, machine.old)
