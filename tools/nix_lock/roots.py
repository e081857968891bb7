"""What is asked for: requirements.in, and what overrides.toml leaves out of upstream's dependencies."""

import tomllib

from tools.nix_lock.package import LOCK

REQUIREMENTS = LOCK / "requirements.in"
OVERRIDES = LOCK / "overrides.toml"


def roots() -> list[str]:
    """The requirements, without comments."""
    lines = (line.partition("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines())
    return [line for line in lines if line]


def overridden() -> dict[tuple[str, str], list[str]]:
    """Requires-Dist lines that stand in place of upstream's, by name and version."""
    entries = tomllib.loads(OVERRIDES.read_text())["dependency-metadata"]
    return {(entry["name"], entry["version"]): entry["requires-dist"] for entry in entries}
