"""One locked package, and the file of all of them: JSON with one package a line, sorted by name."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

LOCK = Path(__file__).parents[2] / "nix" / "lock"
PACKAGES = LOCK / "packages.json"


@dataclass(frozen=True)
class Package:
    """A package as Nix fetches it. `dependencies` are upstream's own Requires-Dist lines that hold on the platform."""

    name: str  # normalized (PEP 503)
    version: str
    file: str  # a wheel
    sha256: str  # of the file, in hex
    size: int  # bytes
    dependencies: list[str]


def read(path: Path = PACKAGES) -> list[Package]:
    """The locked packages, in the file's order."""
    return [Package(**entry) for entry in json.loads(path.read_text())]


def text(packages: list[Package]) -> str:
    """The file's text: the same packages give the same bytes."""
    lines = [json.dumps(asdict(package)) for package in sorted(packages, key=lambda package: package.name)]
    return "[\n" + ",\n".join(lines) + "\n]\n"
