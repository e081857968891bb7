"""A real sshd on loopback with keys, configuration and port of its own, and an ssh in front of PATH that knows it."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
SSH = shutil.which("ssh")
SEPARATION = Path("/run/sshd")
"""A folder that sshd of root wants to exist; where there is no service manager, nobody has made it."""


class Sshd:
    """The server, and the configuration of the user who asks it. `ask` is what to give as --host."""

    def __init__(self, folder: Path, forced: str | None = None):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.forced = forced
        self.ask = "machine"
        for name in ("host_key", "user_key", "other_key"):
            if not (folder / name).exists():
                quiet = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(folder / name)]
                subprocess.run(quiet, check=True)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        self.process: subprocess.Popen | None = None
        self.made_separation = False

    def start(self) -> None:
        """Start the server and wait until it accepts."""
        config = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder / 'host_key'}",
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
        ]
        if self.forced:
            (self.folder / "forced").write_text(f"#!/bin/sh\n{self.forced}\n")
            (self.folder / "forced").chmod(0o755)
            config.append(f"ForceCommand {self.folder / 'forced'}")
        (self.folder / "sshd_config").write_text("\n".join(config) + "\n")
        if os.geteuid() == 0 and not SEPARATION.exists():
            SEPARATION.mkdir(mode=0o755)
            self.made_separation = True
        log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        log.close()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """End the server and the sessions that it holds."""
        if self.process:
            import psutil

            children = psutil.Process(self.process.pid).children(recursive=True) if self.process.poll() is None else []
            self.process.terminate()
            for child in children:
                if child.is_running():
                    child.kill()
            self.process.wait(10)
        if self.made_separation:
            SEPARATION.rmdir()
            self.made_separation = False

    def client(self, known: str | None = "right", key: str = "user_key", name: str = "127.0.0.1") -> Path:
        """Write the user's configuration and an `ssh` that reads it; returns the folder to put in front of PATH."""
        keys = {"right": "host_key.pub", "wrong": "other_key.pub"}
        lines = ""
        if known:
            kind, blob = (self.folder / keys[known]).read_text().split()[:2]
            lines = f"[{name}]:{self.port} {kind} {blob}\n"
        (self.folder / "known_hosts").write_text(lines)
        (self.folder / "config").write_text(
            f"Host {self.ask}\n  HostName {name}\n  Port {self.port}\n  IdentityFile {self.folder / key}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.folder / 'known_hosts'}\n"
            "  GlobalKnownHostsFile /dev/null\n"
        )
        program = self.folder / "bin/ssh"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\necho "$@" >> {self.folder / "calls"}\nexec {SSH} -F {self.folder / "config"} "$@"\n'
        )
        program.chmod(0o755)
        return program.parent

    def calls(self) -> list[str]:
        """How ssh was called, a line a call."""
        return (self.folder / "calls").read_text().splitlines()


def missing() -> str | None:
    """Why no sshd can be run here, or None."""
    if not SSHD or not SSH:
        return "openssh-server and openssh-client are not both installed"
    return None


def free_port() -> int:
    """A port that nobody has on loopback now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
