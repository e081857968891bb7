"""What a deploy leaves on the host's disk: journal, lock, confirmation, history. Writes are whole and on the disk."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from appliance.documents import Document
from appliance.documents.base import write_whole
from appliance.documents.deploy import DeployHistory, DeployJournal, DeployRecord
from appliance.errors import CheckFailed, InputError

FOLDER = Path("/var/lib/appliance-deploy")


class HostState:
    """The files of deploys below one folder, readable by root only."""

    def __init__(self, folder: Path = FOLDER):
        self.folder = folder
        self.journal_file = folder / "journal.json"
        self.history_folder = folder / "history"

    def prepare(self) -> None:
        """Make the folder. Raises InputError."""
        try:
            self.history_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}); expected to be root") from None

    def journal(self) -> DeployJournal | None:
        """The journal of the last deploy, or None. Raises InputError where it is no journal."""
        return DeployJournal.read(self.journal_file) if self.journal_file.exists() else None

    def write_journal(self, journal: DeployJournal) -> None:
        """Put the journal on the disk: after this returns a power cut does not lose it."""
        durable(journal, self.journal_file)

    def history(self) -> DeployHistory:
        """All records, the oldest first."""
        return DeployHistory(records=[DeployRecord.read(file) for file in sorted(self.history_folder.glob("*.json"))])

    def add_record(self, record: DeployRecord) -> None:
        """Keep the record of a deploy that ended; a second one of the same deploy replaces the first."""
        durable(record, self.history_folder / f"{record.id}.json")

    def confirmation(self, id: str) -> Path:
        """The file whose existence says that the deployer of deploy `id` has confirmed."""
        return self.folder / f"confirmed-{id}"

    def confirm(self, id: str) -> None:
        """Confirm deploy `id`. Raises CheckFailed where the host does not wait for that."""
        journal = self.journal()
        if journal is None or journal.request.id != id or journal.step != "waiting":
            now = f"deploy {journal.request.id} is {journal.step}" if journal else "there is no deploy"
            raise CheckFailed(f"{id} cannot be confirmed: {now}; expected it to be waiting")
        write_whole(self.confirmation(id), "")

    def request_file(self, id: str) -> Path:
        """Where the request of deploy `id` is, for the unit that carries it out."""
        return self.folder / f"request-{id}.json"

    def forget_earlier(self, id: str) -> None:
        """Remove requests and confirmations of deploys before `id`."""
        for file in [*self.folder.glob("confirmed-*"), *self.folder.glob("request-*.json")]:
            if file != self.request_file(id):
                file.unlink(missing_ok=True)

    @contextmanager
    def locked(self, who: str) -> Iterator[None]:
        """Hold the host for one deploy. Raises CheckFailed that names the holder where another one does."""
        self.prepare()
        with open(self.folder / "lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CheckFailed(f"another deploy is going on: {self.holder() or 'it has just begun'}") from None
            file.seek(0)
            file.truncate()
            since = datetime.now(UTC).isoformat(timespec="seconds")
            json.dump({"who": who, "since": since, "pid": os.getpid()}, file)
            file.flush()
            try:
                yield
            finally:
                file.seek(0)
                file.truncate()

    def holder(self) -> str | None:
        """Who holds the host, since when, as which process; None where nobody does."""
        try:
            with open(self.folder / "lock", encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    with suppress(ValueError, KeyError):
                        held = json.load(file)
                        return f"{held['who']}, since {held['since']}, process {held['pid']}"
                    return "somebody who has just begun"
        except OSError:
            return None
        return None


def durable(document: Document, path: Path) -> None:
    """Write a document so that it, and its name, are on the disk when this returns. Raises InputError."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(document.to_json())
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
