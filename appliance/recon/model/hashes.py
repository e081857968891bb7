"""sha256 of weight files, several at once, and what they should be.

hashlib lets go of the interpreter while it hashes, so threads run side by side, one a CPU at most: the hash of one
file cannot be split, and with SHA instructions a core hashes about as fast as an NVMe disk reads.
"""

import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from appliance.documents.model import ModelFile
from appliance.errors import InputError

CHUNK = 1 << 20  # small enough to stay in a core's cache between being read and being hashed
SHA256 = re.compile(r"^[0-9a-f]{64}$")
MOST_FILES_AT_ONCE = 16


class Counter:
    """Bytes done, added up over threads, told to `on_progress(done, total)`; `stopped` ends the threads early."""

    def __init__(self, total: int, on_progress: Callable[[int, int], None]):
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._on_progress = on_progress
        self.stopped = False

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            done = self._done
        self._on_progress(done, self._total)


def hash_files(folder: Path, names: Iterable[str], on_progress=lambda done, total: None) -> list[ModelFile]:
    """sha256 and size of the files `names` in `folder`. Raises InputError when one cannot be read."""
    sizes = {name: size_of(folder / name) for name in names}
    counter = Counter(sum(sizes.values()), on_progress)
    workers = max(1, min(len(os.sched_getaffinity(0)), MOST_FILES_AT_ONCE))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        largest_first = sorted(sizes, key=lambda name: -sizes[name])
        tasks = {pool.submit(sha256_of, folder / name, counter): name for name in largest_first}
        try:
            hashed = {tasks[task]: task.result() for task in as_completed(tasks)}
        except BaseException:  # an unreadable file, or Ctrl-C: the others stop at their next chunk
            counter.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [ModelFile(name=name, size=sizes[name], sha256=hashed[name]) for name in sorted(hashed)]


def size_of(path: Path) -> int:
    """Size of a regular file in bytes. Raises InputError."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: not a regular file; expected one to hash")
    return status.st_size


def sha256_of(path: Path, counter: Counter) -> str:
    """sha256 of a file, in hexadecimal. Raises InputError."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK))
    try:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while not counter.stopped and (count := file.readinto(buffer)):
                digest.update(buffer[:count])
                counter.add(count)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()


def recorded(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """sha256 by file that huggingface_hub left behind when it downloaded `folder`; files without a record are absent.

    In its cache a file is a link to a blob named by its hash; in a folder downloaded to (local_dir) the second line of
    `.cache/huggingface/download/FILE.metadata` is the hash.
    """
    found = {}
    for name in names:
        path = folder / name
        target = os.path.basename(os.readlink(path)) if path.is_symlink() else ""
        try:
            note = (folder / ".cache/huggingface/download" / f"{name}.metadata").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            note = ""
        lines = note.splitlines()
        for candidate in (target, lines[1].strip() if len(lines) > 1 else ""):
            if SHA256.match(candidate):
                found[name] = candidate
                break
    return found
