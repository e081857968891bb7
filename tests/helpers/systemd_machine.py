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

# The root is bound, read-only, in a mount namespace of its own: it disappears with the last process in there, and
# this machine's name space never holds a second way to its own root.
BOOT = 'mount --bind -o ro / "$0" && exec systemd-nspawn -q -D "$0" "$@"'
PRIVATE_MOUNTS = ["unshare", "--mount", "--propagation", "private"]
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
    units: dict[str, str],
    script: str,
    shared: Path,
    visible: list[Path],
    timeout_s: float = 240,
    places: dict[str, Path] | None = None,
) -> str:
    """Boot, install `units` (text by name), run the bash `script` as a unit, power off; return its output.

    `shared` is there at its own path and written through; `visible` folders are there to read, which /tmp of this
    machine is not otherwise, and those of `places` at the paths that name them. Skips the test where nspawn cannot run.
    """
    if not can_boot():
        pytest.skip("needs systemd-nspawn (Debian: systemd-container) and the right to mount")
    (shared / "script").write_text(script)
    units = units | {"driver.service": DRIVER.format(shared=shared)}
    for name, text in units.items():
        (shared / name).write_text(text)
    binds = [f"--bind={shared}", *(f"--bind-ro={path}" for path in visible)]
    binds += [f"--bind-ro={path}:{place}" for place, path in (places or {}).items()]
    binds += [f"--bind-ro={shared / name}:/etc/systemd/system/{name}" for name in units]
    options = ["--volatile=overlay", "--register=no", "--keep-unit", "--private-network", *binds]
    before = control_groups()
    root = tempfile.mkdtemp(prefix="machine-")
    try:
        done = subprocess.run(
            [*PRIVATE_MOUNTS, "sh", "-c", BOOT, root, *options, "/lib/systemd/systemd", "--unit=driver.service"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    finally:
        os.rmdir(root)  # never more than that: see BOOT
        remove(control_groups() - before)
    output = shared / "output"
    assert output.exists(), done.stdout + done.stderr
    return output.read_text()


def can_boot() -> bool:
    """Whether systemd-nspawn is installed and mounts can be made."""
    if not shutil.which("systemd-nspawn"):
        return False
    return subprocess.run([*PRIVATE_MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode == 0


def control_groups() -> set[Path]:
    """The control groups of the kind that nspawn leaves when it registers with no manager."""
    return {group for name in CONTROL_GROUPS_LEFT for group in Path("/sys/fs/cgroup").glob(f"**/{name}")}


def remove(groups: set[Path]) -> None:
    """Remove empty control groups, with those below them."""
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
