"""Notes of slow findings in the cache folder: one JSON file each, named by what it depends on."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance.documents import write_whole
from appliance.errors import InputError
from appliance.paths import cache_directory


def note(kind: str, name: str) -> Path:
    """The file of a note."""
    return cache_directory() / kind / f"{name}.json"


def remembered(file: Path) -> Any:
    """What an earlier run wrote there; None where there was none, or it is not readable."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return None


def remember(file: Path, finding: Any) -> None:
    """Keep a finding. A cache that cannot be written costs time, not facts."""
    with suppress(InputError):
        write_whole(file, json.dumps(finding) + "\n")
