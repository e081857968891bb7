"""A machine with a real systemd as its first process: this machine's files, seen through a throw-away overlay.

systemd-nspawn boots it in under a second; it has a loopback of its own and no other network, its own processes and
its own /tmp. What it writes is gone with it, except in the one folder that is shared.
"""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

CONTROL_GROUPS_LEFT = ("payload", "supervisor")

DRIVER = """\
[Unit]
Description=what the test wants to know
[Service]
Type=oneshot
ExecStart=/bin/bash -eu {shared}/script
StandardOutput=file:{shared}/output
StandardError=append:{shared}/output
ExecStopPost=/bin/systemctl --no-block exit
TimeoutStartSec=infinity
"""


def run_on_systemd(
    units: dict[str, str], script: str, shared: Path, visible: list[Path], timeout_s: float = 240
) -> str:
    """Boot, install `units` (text by name), run the bash `script` as a unit, power off; return its output.

    `shared` is there at its own path and written through; `visible` folders are there to read, which /tmp of this
    machine is not otherwise. Skips the test where nspawn cannot run.
    """
    if os.geteuid() != 0 or not shutil.which("systemd-nspawn"):
        pytest.skip("needs root and systemd-nspawn (Debian: systemd, systemd-container)")
    (shared / "script").write_text(script)
    units = units | {"driver.service": DRIVER.format(shared=shared)}
    for name, text in units.items():
        (shared / name).write_text(text)
    binds = [
        f"--bind={shared}",
        *(f"--bind-ro={path}" for path in visible),
        *(f"--bind-ro={shared / name}:/etc/systemd/system/{name}" for name in units),
    ]
    with tempfile.TemporaryDirectory(prefix="machine-") as root:
        subprocess.run(["mount", "--bind", "/", root], check=True)
        try:
            done = subprocess.run(
                ["systemd-nspawn", "-q", "-D", root, "--volatile=overlay", "--register=no", "--keep-unit"]
                + ["--private-network", *binds, "/lib/systemd/systemd", "--unit=driver.service"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        finally:
            subprocess.run(["umount", root], check=True)
            remove_control_groups()
    output = shared / "output"
    assert output.exists(), done.stdout + done.stderr
    return output.read_text()


def remove_control_groups() -> None:
    """Remove the empty control groups that nspawn leaves when it registers with no manager."""
    groups = [group for name in CONTROL_GROUPS_LEFT for group in Path("/sys/fs/cgroup").glob(f"**/{name}")]
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
