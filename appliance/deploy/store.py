"""Building and copying: what is left to Nix, called as people call it."""

import json
import os
import subprocess
from pathlib import Path

from appliance.deploy.host.kind import PLAN, PROGRAM, UNITS
from appliance.deploy.remote import ALONE, OPTIONS, Remote
from appliance.documents import Plan
from appliance.documents.deploy import StorePart
from appliance.errors import CheckFailed, InputError, ProbeIncomplete

FEATURES = ["--extra-experimental-features", "nix-command flakes"]
ROOT = "/nix/var/nix/gcroots/appliance-deploy"
"""On the host: keeps what was copied last from the garbage collector until it is the boot default."""


def nix(words: list[str], env: dict[str, str] | None = None) -> str:
    """The output of a nix command; its progress goes to stderr. Raises CheckFailed, ProbeIncomplete."""
    try:
        done = subprocess.run(
            ["nix", *FEATURES, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=os.environ | (env or {}),
            check=False,
        )
    except OSError as error:
        raise ProbeIncomplete(f"nix cannot be run ({error.strerror}); expected it on PATH") from None
    if done.returncode != 0:
        raise CheckFailed(f"nix {words[0]}: {' '.join(done.stderr.split())[-800:]}")
    return done.stdout


def built(what: str) -> str:
    """The store path of a generation: `what` is one already, or what `nix build` takes. Raises CheckFailed."""
    if what.startswith("/nix/store/"):
        return str(Path(what).resolve())
    return nix(["build", "--no-link", "--print-out-paths", what]).strip()


def built_on(remote: Remote, what: str) -> str:
    """The same, built on the host: evaluated here, and nothing of it is kept here. Raises CheckFailed."""
    words = [
        "build",
        "--no-link",
        "--print-out-paths",
        "--eval-store",
        "auto",
        "--store",
        f"ssh-ng://{remote.host}",
        what,
    ]
    return nix(words, ssh_environment()).strip()


def ssh_environment() -> dict[str, str]:
    """What makes Nix's own ssh ask no question either. Its host key checks are those of the user."""
    return {"NIX_SSHOPTS": " ".join([os.environ.get("NIX_SSHOPTS", ""), *OPTIONS, *ALONE]).strip()}


def closure(generation: str) -> list[StorePart]:
    """The store paths that a generation needs, with their sizes. Raises CheckFailed."""
    found = json.loads(nix(["path-info", "--recursive", "--json", generation]))
    return [StorePart(path=path, bytes=info["narSize"]) for path, info in found.items()]


def missing_on(remote: Remote, parts: list[StorePart]) -> list[StorePart]:
    """Those that the host has not."""
    paths = "\n".join(part.path for part in parts)
    script = "PATH=$PATH:/nix/var/nix/profiles/default/bin; xargs nix-store --check-validity --print-invalid"
    invalid = set(remote.call(["sh", "-c", script], paths).stdout.split())
    return [part for part in parts if part.path in invalid]


def copy(remote: Remote, generation: str, use_substitutes: bool) -> None:
    """Bring a closure to the host, with its signatures. Raises CheckFailed."""
    words = ["copy", "--to", f"ssh://{remote.host}", generation]
    nix([*words, *(["--substitute-on-destination"] if use_substitutes else [])], ssh_environment())
    remote.root(["ln", "-sfn", generation, ROOT])


def plan_in(generation: str) -> Plan:
    """The plan in a generation that is in the store here. Raises InputError where it is no generation."""
    for needed in (PLAN, PROGRAM, UNITS):
        if not (Path(generation) / needed).exists():
            raise InputError(
                f"{generation} has no {needed}; expected a NixOS system with the appliance, or a systemdHost"
            )
    return Plan.read(Path(generation) / PLAN)


def texts_in(generation: str) -> dict[str, str]:
    """The units of the appliance in a generation here, by name."""
    return {file.name: file.read_text() for file in (Path(generation) / UNITS).glob("sglang-*")}
