"""What was measured to be fastest, kept in a file a combination of GPU and versions."""

import fcntl
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Collection
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

logger = logging.getLogger(__name__)

FOLDER_VARIABLE = "APPLIANCE_KERNELS_CACHE"
PACKAGES = ("torch", "triton", "flashinfer-python", "sglang")


def folder() -> Path:
    """$APPLIANCE_KERNELS_CACHE, else appliance/kernels in the user's cache folder (XDG Base Directory)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(FOLDER_VARIABLE) or cache / "appliance" / "kernels")


def key_of(gpu: str, library: Path) -> dict[str, str | None]:
    """Everything that a measurement holds for; another value of any of it is another file."""
    return {"gpu": gpu, "library_sha256": sha256(library)} | {name: installed(name) for name in PACKAGES}


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Choices:
    """The choices of one key, by bucket. Every failure of the file costs a measurement, never the service.

    `names`: the kernels there are; a choice of another one counts as none.
    """

    def __init__(self, directory: Path, key: dict[str, str | None], names: Collection[str]):
        self._key, self._names = key, names
        self.path = directory / f"{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]}.json"

    def get(self, bucket: str) -> str | None:
        """The choice kept for `bucket`, or None."""
        choice = self._read().get(bucket, {}).get("choice")
        return choice if choice in self._names else None

    def keep(self, bucket: str, choice: str, microseconds: dict[str, list[float]]) -> str:
        """Keep a choice and return the one that stands: of processes that measure at once the first decides for all,
        so that the ranks of one server run the same kernel from the next start on."""
        entry = {
            "choice": choice, "microseconds": microseconds, "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }  # fmt: skip
        try:
            with self._locked():
                entries = self._read()
                standing = entries.get(bucket, entry)["choice"]
                if standing not in self._names or bucket not in entries:
                    standing, entries[bucket] = choice, entry
                    self._write(entries)
            return standing
        except OSError as error:
            logger.warning("appliance kernels: %s is not written (%s)", self.path, error)
            return choice

    def _read(self) -> dict[str, dict]:
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            entries = document["choices"]
            if document["key"] == self._key and all(isinstance(e["choice"], str) for e in entries.values()):
                return entries
            reason = "made for something else"
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = repr(error)
        logger.warning("appliance kernels: %s is of no use (%s): measuring anew", self.path, reason)
        return {}

    def _write(self, entries: dict[str, dict]) -> None:
        text = json.dumps({"key": self._key, "choices": entries}, indent=1, sort_keys=True) + "\n"
        descriptor, scratch = tempfile.mkstemp(prefix=self.path.name, dir=self.path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(scratch, self.path)

    @contextmanager
    def _locked(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
