"""A run as a transient systemd unit: it goes on when the login that began it ends."""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TextIO

from appliance.errors import CheckFailed, InputError

PASSED_ON = ("HOME", "PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES")
PREFIXES = ("APPLIANCE_", "SGLANG_", "HF_", "XDG_")


def start(arguments: list[str], record: Path, say_to: TextIO) -> int:
    """Run `appliance` with these arguments, without --transient, as a unit; say how to follow it. Returns 0.

    Raises InputError where this is not root's systemd, CheckFailed where systemd refuses.
    """
    if os.geteuid() != 0 or not shutil.which("systemd-run") or not Path("/run/systemd/system").is_dir():
        raise InputError("--transient: needs root and a running systemd; expected to be started without it")
    unit = f"appliance-bench-{uuid.uuid4().hex[:8]}.service"
    words = [word for word in arguments if word != "--transient"]
    command = ["systemd-run", "--quiet", f"--unit={unit}", "--collect", f"--working-directory={Path.cwd()}"]
    command += ["--property=KillMode=mixed", "--property=TimeoutStopSec=180"]
    command += [
        f"--setenv={name}={value}" for name, value in os.environ.items() if passed_on(name) and "\n" not in value
    ]
    done = subprocess.run(
        [*command, sys.executable, "-m", "appliance", *words], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CheckFailed(f"systemd-run: {' '.join(done.stderr.split())}")
    print(f"running as {unit}; the record grows in {record.absolute()}", file=say_to)
    print(f"follow it: journalctl -fu {unit}; stop it: systemctl stop {unit}", file=say_to)
    return 0


def passed_on(name: str) -> bool:
    """Whether a variable of this login is the unit's too."""
    return name in PASSED_ON or name.startswith(PREFIXES)
