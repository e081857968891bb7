"""Hosts with a real systemd, sshd and Nix store of their own on a network of their own, whose power can be cut.

Each is this machine's file system seen through an overlay, booted by systemd-nspawn on a bridge in namespaces that end
with the test. What a host writes outlives a power cut, and is gone with the namespaces. Nix is Debian 13's, started by
that release's own loader.
"""

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.nix_environment import PROJECT, in_nix_environment
from tests.helpers.systemd_machine import can_boot, control_groups, remove

NIX_PROGRAMS = ("nix", "nix-store", "nix-env", "nix-instantiate")
NIX = """\
#!/bin/sh
lib=/srv/nix-root/usr/lib/x86_64-linux-gnu
exec $lib/ld-linux-x86-64.so.2 --argv0 $(basename "$0") --library-path $lib:$lib/systemd \\
    /srv/nix-root/usr/bin/nix "$@" --option build-hook ''
"""
NIX_CONF = """\
experimental-features = nix-command flakes
substituters =
flake-registry =
sandbox = false
build-users-group =
warn-dirty = false
"""
SSHD = """\
[Unit]
Description=sshd of the test
[Service]
ExecStartPre=/bin/mkdir -p /run/sshd
ExecStartPre=/sbin/ip address replace {address}/24 dev host0
ExecStartPre=/sbin/ip link set host0 up
ExecStartPre=/sbin/ip link set lo up
ExecStart=/usr/sbin/sshd -D -e -f /etc/ssh/test_config
KillMode=process
[Install]
WantedBy=multi-user.target
"""
SSHD_CONFIG = """\
HostKey /etc/ssh/test_host_key
AuthorizedKeysFile /etc/ssh/test_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
AcceptEnv APPLIANCE_*
"""
SSH_CONFIG = """\
Host *
    User root
    IdentityFile {key}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
"""
SETTLED_S = 60.0
FIRST, MOST = 11, 8
"""Number of the first host, which is the last part of its address; how many there may be."""


class Network:
    """A network namespace with a bridge, a key that all hosts take, and the hosts."""

    def __init__(self, folder: Path, places: dict[str, Path] | None = None):
        if not can_boot():
            pytest.skip("needs systemd-nspawn (Debian: systemd-container) and the right to mount")
        in_nix_environment("true")  # makes the root that Nix is in, or skips
        self.folder, self.places = folder, {"/srv/nix-root": nix_root(), "/srv/project": PROJECT} | (places or {})
        self.hosts: dict[str, Host] = {}
        self.groups = control_groups()
        for name in ("host_key", "user_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        # the folder in which roots are mounted is seen in the namespace only
        words = ["unshare", "--net", "--mount", "--propagation", "private", "--kill-child", "--pid", "--fork"]
        self.holder = subprocess.Popen([*words, "sh", "-c", "echo up; exec sleep infinity"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.inside = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()[0]
        self.disks = folder / "disks"
        self.disks.mkdir()
        self.run(f"mount -t tmpfs -o mode=755 tmpfs {self.disks}")
        self.run("ip link set lo up; ip link add hosts0 type bridge; ip address add 10.77.0.1/24 dev hosts0")
        self.run("ip link set hosts0 up")

    def enter(self) -> list[str]:
        """The command that goes before another one to run it in here."""
        return ["nsenter", f"--target={self.inside}", "--net", "--mount"]

    def run(self, script: str, timeout_s: float = 60) -> str:
        """Run a shell script in here, on this machine."""
        words = [*self.enter(), "sh", "-euc", script]
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def host(self) -> "Host":
        """A new host, booted. All of them know each other by name and key."""
        number = FIRST + len(self.hosts)
        host = Host(self, f"host{number}", f"10.77.0.{number}")
        self.hosts[host.name] = host
        blob = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        lines = [f"{host.address},{host.name} {blob}\n" for host in self.hosts.values()]
        (self.folder / "known_hosts").write_text("".join(lines))
        host.boot()
        return host

    def close(self) -> None:
        """End all hosts, the namespaces, and what nspawn leaves of control groups."""
        for host in self.hosts.values():
            host.cut_power()
        self.holder.kill()
        self.holder.wait()
        remove(control_groups() - self.groups)


class Host:
    """One machine on the network."""

    def __init__(self, network: Network, name: str, address: str):
        self.network, self.name, self.address = network, name, address
        self.disk = network.disks / name
        self.process: subprocess.Popen | None = None
        disk = shlex.quote(str(self.disk))
        network.run(f"mkdir -p {disk}/upper {disk}/work {disk}/root")
        self._furnish()

    def _furnish(self) -> None:
        key = self.network.folder
        self.write("/etc/ssh/test_config", SSHD_CONFIG)
        self.write(
            "/root/.ssh/config", "Host *\n  User root\n  IdentityFile /root/.ssh/test_key\n  LogLevel ERROR\n", 0o600
        )
        self.write("/root/.ssh/test_key", (key / "user_key").read_text(), 0o600)
        blob = " ".join((key / "host_key.pub").read_text().split()[:2])
        names = [(f"host{number}", f"10.77.0.{number}") for number in range(FIRST, FIRST + MOST)]
        self.write("/root/.ssh/known_hosts", "".join(f"{name},{address} {blob}\n" for name, address in names))
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in names))
        self.write("/etc/ssh/test_host_key", (key / "host_key").read_text(), 0o600)
        self.write("/etc/ssh/test_keys", (key / "user_key.pub").read_text())
        self.write("/etc/systemd/system/test-sshd.service", SSHD.format(address=self.address))
        self.write("/etc/nix/nix.conf", NIX_CONF)
        self.write("/etc/hostname", f"{self.name}\n")
        for name in NIX_PROGRAMS:
            self.write(f"/usr/local/bin/{name}", NIX, 0o755)
        upper = f"{self.disk}/upper"
        self.network.run(
            f"cd {upper}; mkdir -p nix/store nix/var/nix etc/systemd/system/multi-user.target.wants srv\n"
            "ln -s ../test-sshd.service etc/systemd/system/multi-user.target.wants/\n"
            # nothing of the machine that the test runs on is to start here
            "for unit in /etc/systemd/system/*.wants/* ssh.service ssh.socket sshd.service; do\n"
            "    ln -sf /dev/null etc/systemd/system/$(basename $unit)\n"
            "done"
        )

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Put a file on the disk of a host that is off."""
        at = shlex.quote(f"{self.disk}/upper{path}")
        words = [*self.network.enter(), "sh", "-euc", f'mkdir -p "$(dirname {at})"; cat > {at}; chmod {mode:o} {at}']
        subprocess.run(words, input=text, text=True, check=True)

    def boot(self) -> None:
        """Switch it on, and wait until it answers by ssh."""
        disk = self.disk
        overlay = f"lowerdir=/,upperdir={disk}/upper,workdir={disk}/work"
        binds = [f"--bind-ro={path}:{place}" for place, path in self.network.places.items()]
        words = ["systemd-nspawn", "-q", "-D", f"{disk}/root", "--register=no", "--keep-unit", f"--machine={self.name}"]
        words += ["--network-bridge=hosts0", "--link-journal=no", *binds, "/lib/systemd/systemd"]
        script = f"mount -t overlay overlay -o {overlay} {disk}/root; exec {shlex.join(words)}"
        log = open(self.network.folder / f"{self.name}.log", "ab")
        enter = [*self.network.enter(), "unshare", "--mount", "--propagation", "private", "sh", "-euc", script]
        self.process = subprocess.Popen(enter, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + SETTLED_S
        while self.try_ssh("true").returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.2)

    def log(self) -> str:
        """What the machine said on its console."""
        return (self.network.folder / f"{self.name}.log").read_text(errors="replace")

    def cut_power(self) -> None:
        """End it at once, with nothing written that was not yet."""
        if self.process is None:
            return
        first = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [*map(int, first), self.process.pid]:  # the kernel ends all others with the machine's first process
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        deadline = time.monotonic() + 10
        while f"vb-{self.name}" in self.network.run("ip -o link") and time.monotonic() < deadline:
            time.sleep(0.05)

    def ssh_options(self) -> list[str]:
        """What ssh is given beside the host."""
        folder = self.network.folder
        (folder / "ssh_config").write_text(SSH_CONFIG.format(key=folder / "user_key", known=folder / "known_hosts"))
        return ["-F", str(folder / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]

    def try_ssh(self, script: str, text: str | None = None, timeout_s: float = 240) -> subprocess.CompletedProcess:
        """Run a shell script on it as root."""
        words = [*self.network.enter(), "ssh", *self.ssh_options(), self.address, script]
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=timeout_s, check=False)

    def ssh(self, script: str, text: str | None = None, timeout_s: float = 240) -> str:
        """The same, which has to succeed; its output."""
        done = self.try_ssh(script, text, timeout_s)
        assert done.returncode == 0, f"{script}: {done.returncode}\n{done.stdout}{done.stderr[-3000:]}"
        return done.stdout


def nix_root() -> Path:
    """The Debian root with Nix that tools/nix-environment made."""
    cache = os.environ.get("APPLIANCE_NIX_DIR")
    base = (
        os.environ.get("APPLIANCE_CACHE_DIR")
        or f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/appliance"
    )
    folder = Path(cache) if cache else Path(base) / "nix"
    found = sorted(folder.glob("debian-*"))
    if not found:
        pytest.skip("no Debian root with Nix of tools/nix-environment is here")
    return found[-1]
