"""A small virtual machine with two NUMA nodes: Debian's cloud kernel and a Debian 13 user land, emulated by qemu.

Emulated on purpose, also where the host has KVM: the same everywhere. It takes a minute or two.
"""

import glob
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.nix_environment import NIX_ENVIRONMENT, in_nix_environment

KERNEL_SETTING = "APPLIANCE_GUEST_KERNEL"
KERNELS = "/boot/vmlinuz-*-cloud-amd64"
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}
LEFT_OUT = ["usr/include", "usr/lib/gcc", "usr/libexec/gcc", "usr/share/doc", "usr/share/locale", "usr/share/man"]
NODE_MIB = 512
MARK = "guest: "

DRIVER = """\
[Unit]
Description=what the test wants to know
[Service]
Type=oneshot
ExecStart=/bin/bash -e /srv/script
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStopPost=/bin/sh -c "sync; echo o > /proc/sysrq-trigger; sleep 60"
TimeoutStartSec=infinity
"""


def run_in_guest(files: dict[str, str], script: str, folder: Path, timeout_s: float = 600) -> list[str]:
    """Boot a guest that has `files` (text by absolute path; those in a bin folder are executable), and run `script`.

    Returns what the script printed after the mark "guest: ", line by line. Skips the test where qemu, a kernel or the
    user land is not to be had.
    """
    for command, package in NEEDED.items():
        if not shutil.which(command):
            pytest.skip(f"needs {command} (Debian: {package})")
    image = disk(files | {"/etc/systemd/system/driver.service": DRIVER, "/srv/script": script}, folder)
    words = [
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-nographic",
        "-no-reboot",
        "-nic",
        "none",
    ]
    words += ["-smp", "2", "-m", str(2 * NODE_MIB)]
    for node in (0, 1):
        words += ["-object", f"memory-backend-ram,id=node{node},size={NODE_MIB}M"]
        words += ["-numa", f"node,nodeid={node},cpus={node},memdev=node{node}"]
    # NVMe and ext4 are built into this kernel: no initial ram disk is needed
    words += ["-drive", f"file={image},format=raw,if=none,id=disk", "-device", "nvme,serial=1,drive=disk"]
    command_line = "root=/dev/nvme0n1 rw init=/lib/systemd/systemd systemd.unit=driver.service console=ttyS0 quiet"
    words += ["-kernel", kernel(), "-append", command_line]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        errors="replace",
    )
    lines = [line.strip() for line in done.stdout.splitlines()]
    found = [line[line.index(MARK) + len(MARK) :] for line in lines if MARK in line]
    assert found, done.stdout[-3000:] + done.stderr
    return found


def kernel() -> str:
    """Debian's cloud kernel."""
    found = os.environ.get(KERNEL_SETTING) or max(glob.glob(KERNELS), default=None)
    if found is None:
        pytest.skip(f"needs Debian's cloud kernel: {KERNEL_SETTING}=$(tools/guest-kernel)")
    return found


def disk(files: dict[str, str], folder: Path) -> Path:
    """An ext4 image of Debian 13's user land with `files`."""
    in_nix_environment("true")  # skips where there is none
    root = folder / "root"
    root.mkdir()
    left_out = [f"--exclude={path}" for path in LEFT_OUT]
    words = ["tar", "-C", "/", "-c", *left_out, "usr", "etc", "bin", "sbin", "lib", "lib64"]
    with subprocess.Popen([NIX_ENVIRONMENT, *words], stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-x", "-C", root], stdin=packed.stdout, check=True)
    for name in ("dev", "proc", "sys", "run", "tmp", "var/lib", "var/cache", "var/log", "root"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    image = folder / "disk"
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", root, image, "1200M"], check=True)
    shutil.rmtree(root)
    return image
