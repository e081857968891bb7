"""What a revision of a model consists of: as the hub lists it, or as a manifest has it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from appliance.documents.checkpoint import CheckpointManifest, outside
from appliance.errors import InputError
from appliance.recon.model.hub import Hub

CHUNK = 1 << 20


class Stopped(Exception):
    """Another file has failed, or the user wants it to end."""


@dataclass(frozen=True)
class Wanted:
    """One file, known by its sha256, or where the hub stores it in git itself by the sha1 of its blob."""

    name: str
    size: int
    sha256: str | None
    blob: str | None = None

    def fault(self, path: Path, on_bytes: Callable[[int], None] = lambda count: None) -> tuple[str | None, str]:
        """(what is wrong with the content of `path`, None if nothing is; its sha256). Raises OSError."""
        sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        buffer, size = memoryview(bytearray(CHUNK)), 0
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                sha256.update(buffer[:count])
                if self.sha256 is None:
                    blob.update(buffer[:count])
                size += count
                on_bytes(count)
        found = sha256.hexdigest()
        if size != self.size:
            return f"{size} bytes, expected {self.size}", found
        if self.sha256 is not None and found != self.sha256:
            return f"sha256 {found}, expected {self.sha256}", found
        if self.sha256 is None and blob.hexdigest() != self.blob:
            return f"git sha1 {blob.hexdigest()}, expected {self.blob}", found
        return None, found


@dataclass(frozen=True)
class Listing:
    """All files of a revision."""

    model: str
    revision: str
    files: list[Wanted]


def listed_by(hub: Hub) -> Listing:
    """The files of the hub's repository. Raises InputError, ProbeIncomplete."""
    files = []
    for name, file in hub.files().items():
        sha256 = file.lfs.sha256 if file.lfs is not None else None
        if outside(name):
            raise InputError(f"{hub.where}: lists {name!r}, which lies outside the model; expected files of the model")
        if file.size is None or (sha256 is None and file.blob_id is None):
            raise InputError(f"{hub.where}: lists {name} without size or hash; expected both, to verify it by")
        files.append(Wanted(name, file.size, sha256, file.blob_id))
    return Listing(hub.repo, hub.revision or "", files)


def listed_in(manifest: CheckpointManifest) -> Listing:
    """The files of a manifest."""
    files = [Wanted(file.name, file.size, file.sha256) for file in manifest.files]
    return Listing(manifest.model, manifest.revision, files)
