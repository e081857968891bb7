"""A pretended host for the state machine: what runs and what is booted into are values, and power can be cut anywhere.

Real hosts are in tests/e2e/test_deploy*.py.
"""

from appliance.deploy.host.systemctl import UnitState
from appliance.documents import Check
from appliance.documents.deploy import GateResult
from appliance.errors import CheckFailed

OLD = "/nix/store/00000000000000000000000000000000-old"
NEW = "/nix/store/11111111111111111111111111111111-new"


class PowerCut(BaseException):
    """Nothing of the process runs after this."""


class PretendedHost:
    """HostKind, services and gate in one. What is `volatile` is gone after `boots`; the rest is on the disk.

    Every operation first asks `before`, which may cut the power.
    """

    name = "systemd"

    def __init__(self, boot: str | None = OLD, before=lambda operation: None, gate=None):
        self.boot = boot
        self.tried: str | None = None
        self.appliance: str | None = boot
        self.other_active, self.other_enabled = True, True
        self.before = before
        self.gate = gate or (lambda: ([Check(name="gate", passed=True, evidence="well")], GateResult()))

    def boots(self) -> None:
        """The power comes back."""
        self.tried, self.appliance, self.other_active = None, self.boot, self.other_enabled

    # HostKind
    def running(self):
        return self.tried or self.boot

    def boot_default(self):
        return self.boot

    def activate(self, generation, former):
        self.before("activate: begun")
        self.tried, self.appliance = generation, None
        self.before("activate: in the middle")
        self.appliance = generation

    def make_boot_default(self, generation):
        self.before("keep: begun")
        self.boot = generation
        self.before("keep: in the middle")
        self.tried = None

    def go_back(self, former, former_boot, tried):
        self.before("back: begun")
        self.appliance = None
        self.boot = former_boot
        self.before("back: in the middle")
        self.tried, self.appliance = None, former

    # Systemctl
    def state(self, unit):
        active = "active" if self.other_active else "inactive"
        return UnitState(active, "running", "success", 0, "enabled" if self.other_enabled else "disabled")

    def stop(self, units, patience_s):
        self.before("stop: begun")
        self.other_active = self.other_active and not units
        self.before("stop: done")

    def start(self, units):
        self.before("start")
        self.other_active = self.other_active or bool(units)

    def enable(self, unit, enabled):
        self.before("enable")
        self.other_enabled = enabled

    def logs(self, unit):
        return [f"what {unit} said"]

    # Gate
    def pass_through(self, request, golden, last_speed, say):
        self.before("gate")
        return self.gate()

    def serves(self, generation):
        well = self.appliance == generation
        return [Check(name="the former appliance answers", passed=well, evidence=f"{self.appliance} answers")]

    def service_answers(self, service):
        return Check(name=f"{service.unit} serves again", passed=self.other_active, evidence="asked")


def fails():
    raise CheckFailed("it does not start")
