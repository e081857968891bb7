"""Resolving: uv says which versions and which files there are, pip what each file's metadata asks for."""

import json
import os
import subprocess
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools.nix_lock.closure import applies, requested_extras
from tools.nix_lock.package import Package
from tools.nix_lock.platform import PLATFORMS, PYTHON, UV_PLATFORM, supported_tags
from tools.nix_lock.roots import OVERRIDES, REQUIREMENTS, overridden, roots

PYTHON_VERSION = ".".join(map(str, PYTHON))


class Unresolved(Exception):
    """A tool could not do it; its own words."""


def resolve(python: Path, preferred: list[Package]) -> list[Package]:
    """Resolve the requirements; versions of `preferred` are kept where they can be.

    `python` has uv and pip.
    """
    with tempfile.TemporaryDirectory(prefix="nix-lock-") as folder:
        scratch = Path(folder)
        versions = scratch / "versions.txt"  # uv prefers what its output file has
        versions.write_text("".join(f"{package.name}=={package.version}\n" for package in preferred))
        compile_with_uv(python, "-o", str(versions))
        compile_with_uv(python, "-c", str(versions), "--format", "pylock.toml", "-o", str(scratch / "pylock.toml"))
        entries = tomllib.loads((scratch / "pylock.toml").read_text())["packages"]
        files = {canonicalize_name(entry["name"]): (entry["version"], best_file(entry)) for entry in entries}
        requirements = metadata(python, files, scratch)
    extras = requested_extras(requirements, roots())
    return [
        Package(
            name=name,
            version=version,
            file=file_name(file),
            sha256=file["hashes"]["sha256"],
            size=file["size"],
            dependencies=[r for r in requirements[name] if applies(Requirement(r), extras[name])],
        )
        for name, (version, file) in sorted(files.items())
    ]


def compile_with_uv(python: Path, *arguments: str) -> None:
    target = ["--python-version", PYTHON_VERSION, "--python-platform", UV_PLATFORM]
    command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--config-file", str(OVERRIDES)]
    execute(python, *command, *target, *arguments, str(REQUIREMENTS))


def execute(python: Path, module: str, *arguments: str) -> None:
    environment = os.environ | {"PIP_CONSTRAINT": os.devnull}  # a machine's own caps are not part of the lock
    done = subprocess.run([python, "-m", module, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING: ")]
        raise Unresolved("\n".join(lines).strip() or f"{module} failed without a word")


def file_name(file: dict) -> str:
    return file.get("name") or unquote(Path(urlsplit(file["url"]).path).name)


def best_file(entry: dict) -> dict:
    """The wheel that fits the platform best, of a package in a pylock.toml (PEP 751); Unresolved if none does."""
    ranks = {tag: rank for rank, tag in enumerate(supported_tags())}

    def rank(file: dict) -> int:
        return min((ranks[tag] for tag in parse_wheel_filename(file_name(file))[3] if tag in ranks), default=len(ranks))

    wheels = [file for file in entry.get("wheels", []) if rank(file) < len(ranks)]
    if not wheels:
        raise Unresolved(f"{entry['name']} {entry['version']} has no wheel for CPython 3.12 on x86_64-linux")
    return min(wheels, key=lambda file: (rank(file), file_name(file)))


def metadata(python: Path, files: dict[str, tuple[str, dict]], scratch: Path) -> dict[str, list[str]]:
    """Requires-Dist lines by package name, of exactly these files; overrides.toml's where it has the package."""
    wanted, report = scratch / "wanted.txt", scratch / "report.json"
    wanted.write_text(
        "".join(f"{name}=={version} --hash=sha256:{f['hashes']['sha256']}\n" for name, (version, f) in files.items())
    )
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--require-hashes", "--quiet", "--report", str(report)]
    options.append("--ignore-requires-python")  # pip would look at its own; uv has looked at the right one
    target = ["--python-version", PYTHON_VERSION, "--implementation", "cp", "--target", str(scratch / "target")]
    execute(python, "pip", "install", *options, *target, *platforms, "-r", str(wanted))
    found = {
        canonicalize_name(item["metadata"]["name"]): item["metadata"].get("requires_dist", [])
        for item in json.loads(report.read_text())["install"]
    }
    replaced = {name: lines for (name, version), lines in overridden().items() if files[name][0] == version}
    return found | replaced
