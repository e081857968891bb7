"""Notes of slow findings in the cache folder: one JSON file each, named by what it depends on."""

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from appliance.documents import write_whole
from appliance.errors import InputError
from appliance.paths import cache_directory

Finding = TypeVar("Finding")


def note(kind: str, name: str) -> Path:
    """The file of a note."""
    return cache_directory() / kind / f"{name}.json"


def remembered(file: Path, shape: type[Finding]) -> Finding | None:
    """What an earlier run wrote there; None where there is none, or what is there has not that shape (is spoilt)."""
    try:
        return TypeAdapter(shape).validate_json(file.read_bytes(), strict=True)
    except (OSError, ValueError):
        return None


def remember(file: Path, finding: object) -> None:
    """Keep a finding. A cache that cannot be written costs time, not facts."""
    with suppress(InputError):
        write_whole(file, to_json(finding).decode() + "\n")
