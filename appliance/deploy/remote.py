"""A host over ssh: the user's own configuration, no question asked; root there, or sudo that asks for no password."""

import shlex
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from appliance.errors import CheckFailed, InputError, ProbeIncomplete
from appliance.recon.machine.remote.ssh import CONNECT_LIMIT_S, HOST, reason

OPTIONS = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_LIMIT_S}"]
OPTIONS += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
ALONE = ["-o", "ControlPath=none"]
"""Not over a connection that is open already: what is asked is whether one can be made."""
CALL_LIMIT_S = 120.0
LOST = 255
"""Exit code of ssh itself."""

# sudo hides that PATH, and so does a shell that is no login shell
PATHS = "/run/current-system/sw/bin:/nix/var/nix/profiles/default/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
STANDING = """\
PATH=$PATH:{paths}
if [ -e /etc/NIXOS ]; then
    echo kind nixos; at=/run/current-system boot=/nix/var/nix/profiles/system
else
    echo kind systemd; boot=/nix/var/nix/profiles/sglang-appliance at=/run/appliance-deploy/generation
    [ -e $at ] || at=$boot
fi
if [ -e $at ]; then echo "running $(readlink -f $at)"; fi
if [ -e $boot ]; then echo "boots $(readlink -f $boot)"; fi
[ -d /run/systemd/system ] && echo systemd yes
command -v nix-store > /dev/null && echo "nix $(nix-store --version)"
echo "free $(df -Pk /nix/store 2> /dev/null | awk 'NR == 2 {{ print $4 * 1024 }}')"
if [ -s /var/lib/appliance-deploy/lock ]; then echo deploying; fi
"""


class Standing(NamedTuple):
    """How a host stands, as one round trip tells."""

    kind: str
    running: str | None
    boots: str | None
    store_free_bytes: int | None


class Remote:
    """One host. Raises InputError for a name that is none."""

    def __init__(self, host: str):
        if not HOST.fullmatch(host):
            raise InputError(f"{host!r} is no host; expected user@host or a name of the ssh configuration")
        self.host = host
        self._root: list[str] | None = None

    def words(self, command: list[str] | str, alone: bool = False) -> list[str]:
        """The ssh command that runs `command` there: words, or a line of shell."""
        line = command if isinstance(command, str) else shlex.join(command)
        return ["ssh", "-T", *OPTIONS, *(ALONE if alone else []), "--", self.host, line]

    def call(
        self, command: list[str] | str, text: str = "", limit_s: float = CALL_LIMIT_S, alone: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there, with `text` as its input. Raises ProbeIncomplete where ssh itself fails."""
        try:
            done = subprocess.run(
                self.words(command, alone),
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ProbeIncomplete(f"{self.host}: no answer within {limit_s:g} s") from None
        except OSError as error:
            raise ProbeIncomplete(f"ssh cannot be run ({error.strerror}); expected it on PATH") from None
        if done.returncode == LOST:
            raise ProbeIncomplete(f"{self.host}: {reason(self.host, done.stderr, LOST, limit_s)}")
        return done

    def as_root(self, command: list[str]) -> list[str]:
        """The words that run `command` as root there. Raises InputError where that cannot be done."""
        if self._root is None:
            done = self.call('[ "$(id -u)" = 0 ] && echo root || { sudo -n true && echo sudo; }')
            how = done.stdout.strip()
            if how not in ("root", "sudo"):
                raise InputError(f"{self.host}: not root, and sudo asks for a password; expected one of both")
            self._root = [] if how == "root" else ["sudo", "-n"]
        return [*self._root, *command]

    def root(self, command: list[str], text: str = "", limit_s: float = CALL_LIMIT_S, alone: bool = False) -> str:
        """The output of a command that is run as root and has to succeed. Raises CheckFailed, ProbeIncomplete."""
        done = self.call(self.as_root(command), text, limit_s, alone)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or f"ended with {done.returncode}").splitlines()[-1]
            raise CheckFailed(f"{self.host}: {said.removeprefix('error: ')}")
        return done.stdout

    def standing(self) -> Standing:
        """Kind, generations and room of the host. Raises InputError where it cannot be deployed to."""
        done = self.call("exec sh -s", STANDING.format(paths=PATHS), 30)
        found = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        for need, words in (("systemd", "systemd does not run there"), ("nix", "Nix is not installed there")):
            if need not in found:
                raise InputError(f"{self.host}: {words}; expected NixOS, or a systemd distribution with Nix")
        free = found.get("free", "")
        return Standing(found["kind"], found.get("running"), found.get("boots"), int(float(free)) if free else None)

    def lines(self, command: list[str]) -> Iterator[str]:
        """The lines that a command, run as root, prints as they come. Raises ProbeIncomplete when ssh is lost."""
        words = self.words(self.as_root(command))
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        try:
            yield from process.stdout
            errors = process.stderr.read()
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
            process.stdout.close()
            process.stderr.close()
            process.wait()
        if code != 0:
            raise ProbeIncomplete(f"{self.host}: {reason(self.host, errors, code, 0)}")
