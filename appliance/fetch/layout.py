"""Where a model's revisions lie, and which of them is the current one."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import InputError

MANIFEST = ".appliance-manifest.json"
PARTIAL = ".partial"
CURRENT = "current"
LOCK = ".appliance-fetch.lock"
COMMIT = re.compile(r"^[0-9a-f]{40}$")


def is_commit(revision: str | None) -> bool:
    """Whether `revision` is a commit in full, which means the same files for ever."""
    return revision is not None and COMMIT.match(revision) is not None


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Make the folder `home` and hold it: one fetch at a time. Raises InputError when it cannot be, or is held."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / LOCK).open("a")
    except OSError as error:
        raise InputError(f"{home}: cannot be written ({error.strerror}); expected a folder for the model") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{home}: another fetch is at work there; expected one at a time") from None
        yield


def current(home: Path) -> str | None:
    """The revision that DIR/current leads to; None without one."""
    try:
        return os.path.basename(os.readlink(home / CURRENT))
    except OSError:
        return None


def switch(home: Path, revision: str) -> None:
    """Make `revision` the current one: who opens DIR/current finds the old one or the new, never none."""
    try:
        scratch = tempfile.mkdtemp(prefix=f".{CURRENT}.", dir=home)
        try:
            os.symlink(revision, f"{scratch}/{CURRENT}")
            os.replace(f"{scratch}/{CURRENT}", home / CURRENT)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{home / CURRENT}: cannot be switched ({error.strerror}); expected a link") from None


def prune(home: Path, keep: str) -> list[str]:
    """Remove all revisions but `keep` and the current one; returns which."""
    stay = {keep, current(home)}
    gone = [path for path in sorted(home.iterdir()) if is_commit(path.name) and path.name not in stay]
    for folder in gone:
        (folder / MANIFEST).unlink(missing_ok=True)  # first: half a revision must not pass for a whole one
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise InputError(f"{folder}: cannot be removed ({error.strerror})") from None
    return [folder.name for folder in gone]
