"""Run commands where Nix and Debian 13's systemd are: tools/nix-environment, as users do."""

import os
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
NIX_ENVIRONMENT = PROJECT / "tools/nix-environment"
CANNOT_BRING_UP = 3
SANDBOX = "sandbox-paths = /usr /bin /lib /lib64 /etc/alternatives?"
"""What the stand-in for nixpkgs builds with: Debian's compiler and shell."""


def environment() -> dict[str, str]:
    """This environment, with Nix's settings for builds over the stand-in."""
    return os.environ | {"NIX_CONFIG": SANDBOX}


def in_nix_environment(
    *words: object, text: str | None = None, timeout: float | None = 600
) -> subprocess.CompletedProcess:
    """Run a command where Nix is, with `text` as its standard input. Skips the test where that cannot be brought up."""
    command = [NIX_ENVIRONMENT, *map(str, words)]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, env=environment(), timeout=timeout, check=False
    )
    if done.returncode == CANNOT_BRING_UP and done.stderr.startswith("nix-environment: "):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done
