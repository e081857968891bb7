"""From what is asked for to a verified folder: look, check the disk, bring what is missing, verify, write it down."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from appliance.documents.checkpoint import CheckpointManifest, FetchOutlook, ManifestFile
from appliance.errors import CheckFailed, InputError
from appliance.fetch.download import HubSource, length_of
from appliance.fetch.layout import MANIFEST, PARTIAL, held, is_commit
from appliance.fetch.pace import Pace, Progress
from appliance.fetch.rsync import RsyncSource
from appliance.fetch.survey import Survey, hashed, manifest_of, survey, twins
from appliance.fetch.together import together
from appliance.fetch.wanted import Listing, Wanted, listed_by, listed_in
from appliance.recon.model.hub import Hub, host_of

CONTENT_TRIES = 3
"""How often a file is brought whose content then is not what the hub lists."""
WORKERS = 8


@dataclass(frozen=True)
class Request:
    """What is to be fetched, from where, to where, and how."""

    model: str
    """Repository on the hub, "org/name"."""
    home: Path
    """Folder of the model; each revision gets a folder in it."""
    revision: str | None = None
    """Branch, tag or commit; None: the main branch."""
    flat: bool = False
    """Put the files into `home` itself: one revision, replaced by the next."""
    deep: bool = False
    """Hash every file, also those that look unchanged."""
    workers: int = WORKERS
    rate: int | None = None
    """Bytes a second, over all workers; None: no limit."""
    token: str | None = None
    """None: what huggingface_hub finds in its own settings."""
    source: str | None = None
    """Folder ("/mnt/model") or folder of a host ("user@host:/srv/model") instead of the hub."""

    def folder(self, revision: str) -> Path:
        """Where the files of `revision` lie."""
        return self.home if self.flat else self.home / revision


def quiet(what: str, done: int, total: int) -> None:
    """Progress for nobody."""


def fetch(
    request: Request, on_progress: Progress = quiet, on_damage: Callable[[str], None] = lambda line: None
) -> CheckpointManifest:
    """Bring what `request` wants and return its manifest; `on_damage` is told of each file that was found wrong.

    Where all is there already, nobody is asked. Raises InputError (refused, no room, cannot be written),
    ProbeIncomplete (out of reach, broke off; what came is kept) and CheckFailed (content is not what it should be).
    """
    with held(request.home):
        job = Job(request, on_progress)
        for name, fault in sorted(job.found.wrong.items()):
            on_damage(f"{job.folder / name}: {fault}; it is fetched again")
        return job.run()


def outlook(request: Request, on_progress: Progress = quiet) -> FetchOutlook:
    """What fetch() would do. Writes nothing. Raises as fetch() does."""
    return Job(request, on_progress).outlook()


class Job:
    """One fetch, looked at: what is wanted, what is there."""

    def __init__(self, request: Request, on_progress: Progress):
        self._request, self._on_progress = request, on_progress
        self._rsync = RsyncSource(request.source, request.rate) if request.source else None
        self.listing = self._listing()
        self.folder = request.folder(self.listing.revision)
        self._known = manifest_of(self.folder)
        self.found: Survey = survey(self.listing, self.folder, self._known, request.deep, on_progress)
        self._twins = {} if request.flat else twins(request.home, self.folder, self.found.absent)

    def _listing(self) -> Listing:
        """The files that are wanted: from the manifest that is here, the source's manifest, or the hub."""
        request = self._request
        if request.revision and is_commit(request.revision):
            known = manifest_of(request.folder(request.revision))
            if known and (known.model, known.revision) == (request.model, request.revision):
                return listed_in(known)
        if self._rsync is None:
            return listed_by(Hub(request.model, request.revision, request.token))
        manifest = self._rsync.manifest()
        if manifest.model != request.model:
            raise InputError(f"{request.source}: has {manifest.model}; expected {request.model}")
        if request.revision and is_commit(request.revision) and manifest.revision != request.revision:
            raise InputError(f"{request.source}: has revision {manifest.revision}; expected {request.revision}")
        return listed_in(manifest)

    def outlook(self) -> FetchOutlook:
        """What it will take. Raises InputError."""
        size = sum(file.size for file in self.listing.files)
        missing = [file for file in self.found.absent if file.name not in self._twins]
        status = file_system_of(self.folder)
        block = status.f_frsize
        lengths = {file.name: min(length_of(self._part(file)), file.size) for file in missing}
        return FetchOutlook(
            model=self.listing.model,
            revision=self.listing.revision,
            folder=str(self.folder),
            files=len(self.listing.files),
            size=size,
            there=size - sum(file.size - lengths[file.name] for file in missing),
            to_fetch=sum(file.size - lengths[file.name] for file in missing),
            to_write=sum(blocks(file.size, block) - blocks(lengths[file.name], block) for file in missing),
            free=status.f_bavail * block,
        )

    def run(self) -> CheckpointManifest:
        """Bring what is missing. Raises as fetch() does."""
        stale = self._stale()
        if self.found.absent:
            self._require_room()
        if (self.found.absent or stale) and self._known:
            (self.folder / MANIFEST).unlink()  # until all is right again, it is not a whole checkpoint
        right = self.found.right + self._linked()
        there = {file.name for file in right}
        missing = [file for file in self.found.absent if file.name not in there]
        right += self._brought(missing)
        for name in stale:
            with suppress(OSError):
                (self.folder / name).unlink()
        manifest = CheckpointManifest(
            model=self.listing.model,
            revision=self.listing.revision,
            written=datetime.now(UTC).isoformat(timespec="seconds"),
            files=sorted(right, key=lambda file: file.name),
        )
        if self._known is None or manifest.files != self._known.files or manifest.revision != self._known.revision:
            manifest.write(self.folder / MANIFEST)
        shutil.rmtree(self.folder / PARTIAL, ignore_errors=True)
        return manifest

    def _stale(self) -> list[str]:
        """Files that the former manifest has and the new listing has not: another revision's, in a flat folder."""
        names = {file.name for file in self.listing.files}
        return [file.name for file in self._known.files if file.name not in names] if self._known else []

    def _part(self, file: Wanted) -> Path:
        return self.folder / PARTIAL / file.name

    def _require_room(self) -> None:
        expected = self.outlook()
        if expected.to_write > expected.free:
            raise InputError(
                f"{self.folder}: {expected.to_fetch} bytes are still to be fetched and take {expected.to_write} on the "
                f"disk, which has {expected.free} left; expected {expected.to_write - expected.free} more"
            )

    def _linked(self) -> list[ManifestFile]:
        """Files that another revision has as well: the same file under a second name, its content hashed."""
        if not self._twins:
            return []
        linked = []
        for file in self.found.absent:
            path = self.folder / file.name
            if file.name in self._twins:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.unlink(missing_ok=True)
                    os.link(self._twins[file.name], path)
                except OSError:  # a file system without links: it is fetched
                    continue
                linked.append(file)
        return survey(Listing("", "", linked), self.folder, None, True, self._on_progress).right

    def _brought(self, missing: list[Wanted]) -> list[ManifestFile]:
        """Bring `missing` into their parts, verify each, put it in its place."""
        if not missing:
            return []
        try:
            (self.folder / PARTIAL).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from None
        total = sum(max(0, file.size - length_of(self._part(file))) for file in missing)
        if self._rsync is not None:
            return self._copied(self._rsync, missing, total)
        request = self._request
        pace = Pace("fetching", total, self._on_progress, request.rate)
        where = f"{host_of(hub_endpoint())}/{request.model}@{self.listing.revision}"
        hub = HubSource(request.model, self.listing.revision, where, request.token)
        largest_first = sorted(missing, key=lambda file: -file.size)
        return together([partial(self._download, hub, file, pace) for file in largest_first], request.workers, pace)

    def _download(self, hub: HubSource, file: Wanted, pace: Pace) -> ManifestFile:
        part = self._part(file)
        fault = None
        for _ in range(CONTENT_TRIES):
            hub.bring(file, part, pace)
            fault, sha256 = hashed(file, part, Pace("verifying", file.size, quiet))
            if fault is None:
                return self._placed(file, sha256)
            pace.add(-file.size)
            part.unlink()
        raise CheckFailed(f"{hub.where}: {file.name}: {fault} (fetched {CONTENT_TRIES} times)")

    def _copied(self, source: RsyncSource, missing: list[Wanted], total: int) -> list[ManifestFile]:
        placed: list[ManifestFile] = []
        wrong: dict[str, str] = {}
        for _ in range(CONTENT_TRIES):
            pace = Pace("copying", total, self._on_progress)
            source.bring_all(missing, self.folder / PARTIAL, pace)
            pace = Pace("verifying", sum(file.size for file in missing), self._on_progress)
            calls = [partial(hashed, file, self._part(file), pace) for file in missing]
            results = together(calls, self._request.workers, pace)
            wrong = {}
            for file, (fault, sha256) in zip(missing, results, strict=True):
                if fault:
                    wrong[file.name] = fault
                else:
                    placed.append(self._placed(file, sha256))
            missing = [file for file in missing if file.name in wrong]
            if not missing:
                return placed
        name, fault = next(iter(wrong.items()))
        raise CheckFailed(f"{source.where}: {name}: {fault} (copied {CONTENT_TRIES} times)")

    def _placed(self, file: Wanted, sha256: str) -> ManifestFile:
        """Put a verified part in its place, on the disk before it has its name."""
        part, path = self._part(file), self.folder / file.name
        try:
            with part.open("rb") as content:
                os.fsync(content.fileno())
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, path)
            changed = path.stat().st_mtime_ns
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        return ManifestFile(name=file.name, size=file.size, sha256=sha256, mtime_ns=changed)


def hub_endpoint() -> str:
    """The hub's address (HF_ENDPOINT)."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def blocks(size: int, block: int) -> int:
    """Bytes that a file of `size` bytes takes in blocks of `block`."""
    return -(-size // block) * block


def file_system_of(folder: Path) -> os.statvfs_result:
    """Of `folder`, or of the nearest folder above it that is there. Raises InputError."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        return os.statvfs(there)
    except OSError as error:
        raise InputError(f"{there}: cannot be looked at ({error.strerror})") from None
