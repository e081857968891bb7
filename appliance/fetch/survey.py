"""What of a checkpoint is in a folder, and whether it is what it should be."""

import os
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from appliance.documents.checkpoint import CheckpointManifest, ManifestFile
from appliance.errors import InputError
from appliance.fetch.layout import MANIFEST, is_commit
from appliance.fetch.pace import Pace, Progress
from appliance.fetch.together import together
from appliance.fetch.wanted import Listing, Wanted

MOST_AT_ONCE = 16


@dataclass(frozen=True)
class Survey:
    """Files that are right, files that are there and wrong (with what is wrong), and those that must be brought."""

    right: list[ManifestFile]
    wrong: dict[str, str]
    absent: list[Wanted]
    """The wrong ones as well."""


def survey(
    listing: Listing, folder: Path, known: CheckpointManifest | None, deep: bool, on_progress: Progress
) -> Survey:
    """Compare `folder` with `listing`.

    A file as `known` has it, by size and time of change, is believed; with `deep`, or where it is not known, its
    content is hashed, one file a CPU at a time. Raises InputError where a file cannot be read.
    """
    recorded = {file.name: file for file in known.files} if known else {}
    right: list[ManifestFile] = []
    wrong: dict[str, str] = {}
    to_hash: list[tuple[Wanted, int]] = []
    for file in listing.files:
        status = status_of(folder / file.name)
        if status is None:
            continue
        record = recorded.get(file.name)
        if status.st_size != file.size:
            wrong[file.name] = f"{status.st_size} bytes, expected {file.size}"
        elif not deep and record and file.sha256 == record.sha256 and unchanged(status, record):
            right.append(record)
        else:
            to_hash.append((file, status.st_mtime_ns))
    pace = Pace("verifying", sum(file.size for file, _ in to_hash), on_progress)
    largest_first = sorted(to_hash, key=lambda entry: -entry[0].size)
    calls = [partial(hashed, file, folder / file.name, pace) for file, _ in largest_first]
    most = max(1, min(len(os.sched_getaffinity(0)), MOST_AT_ONCE))
    results = together(calls, most, pace)
    for (file, changed), (fault, sha256) in zip(largest_first, results, strict=True):
        if fault:
            wrong[file.name] = fault
        else:
            right.append(ManifestFile(name=file.name, size=file.size, sha256=sha256, mtime_ns=changed))
    good = {file.name for file in right}
    return Survey(right, wrong, [file for file in listing.files if file.name not in good])


def hashed(file: Wanted, path: Path, pace: Pace) -> tuple[str | None, str]:
    """(what is wrong with the content of `path`, its sha256). Raises InputError."""
    try:
        return file.fault(path, pace.add)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def status_of(path: Path) -> os.stat_result | None:
    """Of a regular file; None where nothing is there. Raises InputError where something else is."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: not a regular file; expected one of the checkpoint's")
    return status


def unchanged(status: os.stat_result, record: ManifestFile) -> bool:
    """Whether a file still has the size and the time of change that were recorded of it."""
    return (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns)


def manifest_of(folder: Path) -> CheckpointManifest | None:
    """The manifest in `folder`; None without one, or where it cannot be read: then the files are hashed anew."""
    try:
        return CheckpointManifest.read(folder / MANIFEST)
    except InputError:
        return None


def twins(home: Path, folder: Path, absent: list[Wanted]) -> dict[str, Path]:
    """For each file of `absent` that another revision below `home` has as well, by its sha256: where."""
    found: dict[str, Path] = {}
    try:
        others = [path for path in home.iterdir() if is_commit(path.name) and path != folder]
    except OSError:
        return found
    for other in others:
        manifest = manifest_of(other)
        by_hash = {file.sha256: file for file in manifest.files} if manifest else {}
        for file in absent:
            record = by_hash.get(file.sha256 or "")
            status = status_of(other / record.name) if record else None
            if record and status and unchanged(status, record):
                found[file.name] = other / record.name
    return found
