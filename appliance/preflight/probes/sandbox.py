"""What prefill and decode can share from within their own units: shared memory, one another's memory, CUDA IPC.

Two processes run as the two workers' units would, in transient units with the settings of the installed units: user,
namespaces, device policy, capabilities. NIXL needs them: UCX takes a shared segment or process_vm_readv(2) in main
memory, and CUDA IPC on GPUs.
"""

import os
import shutil
import subprocess
import uuid
from pathlib import Path

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.nixl_dram import ends
from appliance.preflight.probes.probe import LiveProbe, Subject
from appliance.preflight.probes.unit_process import PlainProcess, UnitProcess

LIMIT_S = 8
NOT_PASSED_ON = ("Exec", "Type", "Restart", "Notify", "Watchdog", "Timeout", "Standard", "LoadCredential")
NOT_PASSED_ON += ("SuccessExitStatus", "SyslogIdentifier", "RemainAfterExit", "RuntimeMaxSec")
"""Settings of a service that say what it runs and how it is watched, and not what it may do."""


def why_not(subject: Subject) -> str | None:
    """Only prefill and decode share anything; on a machine with GPUs, whoever will be them."""
    if all(ends(subject)) or (subject.machine.gpus and subject.simulated is None):
        return None
    return "the plan does not part prefill and decode"


def specify(subject: Subject) -> dict:
    """Both workers: their units' names, environments, and whether they have a GPU."""
    roles = [
        {"unit": f"sglang-{worker.name if worker else role}.service", "environment": subject.environment(worker)}
        for role, worker in zip(("prefill", "decode"), ends(subject), strict=True)
    ]
    on_cpu = subject.plan is not None and subject.plan.engine.device == "cpu"
    cuda = bool(subject.machine.gpus) and not on_cpu and subject.simulated is None
    token = f"appliance-probe-{uuid.uuid4().hex[:12]}"
    places = {"segment": f"/dev/shm/{token}", "folder": f"/run/{token}"}
    return {"roles": roles, "cuda": cuda, "limit_s": LIMIT_S * subject.patience} | places


def tidy(specification: dict) -> None:
    """Take away the shared segment and the pipes of a probe that was killed."""
    Path(specification["segment"]).unlink(missing_ok=True)
    shutil.rmtree(specification["folder"], ignore_errors=True)


PROBE = LiveProbe(
    name="sandbox",
    title="sharing between the workers' units",
    module=__name__,
    limit_s=LIMIT_S,
    why_not=why_not,
    specify=specify,
    tidy=tidy,
    on_gpu=True,
)


def main(spec: dict, teller: Teller) -> None:
    """Let one side offer and the other take, each in its unit."""
    settings = [unit_settings(role["unit"]) for role in spec["roles"]]
    teller.fact("sandbox", describe(settings))
    sides: list[PlainProcess | UnitProcess] = []
    try:
        teller.doing(f"offering memory from {spec['roles'][0]['unit']}")
        sides.append(started("offer", spec["roles"][0], settings[0], spec))
        offer = sides[0].ask({"cuda": spec["cuda"], "segment": spec["segment"]})
        teller.doing(f"taking it in {spec['roles'][1]['unit']}")
        sides.append(started("take", spec["roles"][1], settings[1], spec))
        for name, (well, words) in sides[1].ask(offer)["taken"].items():
            teller.measure(name, int(well), "none")
            teller.fact(name, words)
    finally:
        for side in sides:
            side.end()
        tidy(spec)


def describe(settings: list[list[str] | None]) -> str:
    """Whose settings the two processes had."""
    if None in settings:
        return "none: the units are not installed, or this is not root's systemd; both are plain processes"
    return f"transient units with {len(settings[0])} and {len(settings[1])} settings of the installed ones"


def unit_settings(unit: str) -> list[str] | None:
    """The [Service] settings of an installed unit that say what it may do; None where it cannot be run as one."""
    if os.geteuid() != 0 or not shutil.which("systemd-run") or not Path("/run/systemd/system").is_dir():
        return None
    shown = subprocess.run(["systemctl", "cat", unit], capture_output=True, text=True, check=False)
    return service_settings(shown.stdout) if shown.returncode == 0 else None


def service_settings(text: str) -> list[str]:
    """NAME=VALUE of the [Service] sections in `systemctl cat`, without what is run and how it is watched."""
    found, section = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith(("#", ";", *NOT_PASSED_ON)):
            found.append(line)
    return found


def started(act: str, role: dict, settings: list[str] | None, spec: dict) -> PlainProcess | UnitProcess:
    """One side, in a unit with those settings, or plainly without any."""
    words = ["-W", "ignore", "-m", "appliance.preflight.probes.sandbox_side", act]
    if settings is None:
        return PlainProcess(words, role["environment"])
    return UnitProcess(words, role["environment"], settings, Path(spec["folder"], act), spec["limit_s"])


if __name__ == "__main__":
    run(main)
