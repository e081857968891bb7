"""systemd as a switch needs it. `systemctl stop TARGET` returns before its parts have stopped: here units are."""

import subprocess
import time
from typing import NamedTuple

from appliance.errors import CheckFailed

LOG_LINES = 20
START_LIMIT_S = 90.0
STILL_RUNNING = ("active", "activating", "deactivating", "reloading")


class UnitState(NamedTuple):
    """A unit now: active state and sub state of systemd, result of its last run, how often it was started again."""

    active: str
    sub: str
    result: str
    restarts: int
    file_state: str

    def runs(self) -> bool:
        return self.active in STILL_RUNNING

    def words(self) -> str:
        again = f", started again {self.restarts} times" if self.restarts else ""
        result = f", result {self.result}" if self.result not in ("", "success") else ""
        return f"{self.active} ({self.sub}){result}{again}"


class Systemctl:
    """The service manager of this machine."""

    def state(self, unit: str) -> UnitState:
        """The state of a unit; one that is not loaded is "inactive"."""
        wanted = "ActiveState,SubState,Result,NRestarts,UnitFileState"
        text = call(["systemctl", "show", unit, f"--property={wanted}"]).stdout
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        return UnitState(
            found.get("ActiveState", "unknown"),
            found.get("SubState", ""),
            found.get("Result", ""),
            int(found.get("NRestarts") or 0),
            found.get("UnitFileState", ""),
        )

    def stop(self, units: list[str], patience_s: float) -> None:
        """Stop units and wait until they have; what still runs after `patience_s` is killed. Raises CheckFailed."""
        if not units:
            return
        call(["systemctl", "stop", "--no-block", *units])
        if self._gone(units, patience_s):
            return
        call(["systemctl", "kill", "--signal=SIGKILL", *units])
        if not self._gone(units, 30):
            left = [unit for unit in units if self.state(unit).runs()]
            raise CheckFailed(f"{', '.join(left)} cannot be stopped")

    def _gone(self, units: list[str], patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while any(self.state(unit).runs() for unit in units):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def start(self, units: list[str]) -> None:
        """Ask for units to be started, without waiting for them."""
        if units:
            call(["systemctl", "start", "--no-block", *units])

    def enable(self, unit: str, enabled: bool) -> None:
        """Have a unit started at boot, or not. Raises CheckFailed."""
        done = call(["systemctl", "enable" if enabled else "disable", unit])
        if done.returncode != 0:
            raise CheckFailed(f"{unit}: {done.stderr.strip()}")

    def reload(self) -> None:
        """Read unit files again. Raises CheckFailed."""
        done = call(["systemctl", "daemon-reload"])
        if done.returncode != 0:
            raise CheckFailed(f"systemctl daemon-reload: {done.stderr.strip()}")

    def reset_failed(self, units: list[str]) -> None:
        """Forget failures and restart counters of units."""
        for unit in units:
            call(["systemctl", "reset-failed", unit])

    def logs(self, unit: str) -> list[str]:
        """The last lines that a unit wrote to the journal."""
        done = call(["journalctl", "--unit", unit, "--lines", str(LOG_LINES), "--no-pager", "--output=cat"])
        return done.stdout.splitlines()


def call(words: list[str], limit_s: float = START_LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises CheckFailed where it is not there or takes longer than `limit_s`."""
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"{' '.join(words[:3])} took longer than {limit_s:g} s") from None
    except OSError as error:
        raise CheckFailed(f"{words[0]} cannot be run ({error.strerror})") from None
