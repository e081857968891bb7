"""Where facts are read: files, folders, links, commands and answers of one machine, here or far away.

The readers know only this interface. `LocalSource` reads directly, below a root so that tests can make a machine of
files; `FrameSource` has what one script brought back from another machine.
"""

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from appliance.recon import children
from appliance.recon.concurrency import Probe, side_by_side
from appliance.recon.machine.manifest import ANSWER_BYTES, COMMANDS, TEXT_BYTES

COMMAND_LIMIT_S = 20.0
ANSWER_LIMIT_S = 3.0


@dataclass(frozen=True)
class Output:
    """What a command or a server answered: its text, or why there is none."""

    text: str | None = None
    problem: str | None = None


class Source(Protocol):
    """One machine, as its files, commands and local servers show it. Nothing here raises: what is absent is None."""

    def text(self, path: str) -> str | None:
        """A text file, stripped, without NULs, cut to TEXT_BYTES; None if it cannot be read or is empty."""

    def data(self, path: str) -> bytes | None:
        """A binary file such as a PCI configuration space; None if it cannot be read."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; none if it cannot be read."""

    def sizes(self, folder: str) -> dict[str, int | None] | None:
        """Bytes of each file and -1 of each folder in `folder`, links followed; None for a link to nowhere."""

    def link(self, path: str) -> str | None:
        """Where a link to a folder leads in the end; None if it leads nowhere."""

    def space(self, path: str) -> tuple[int, int] | None:
        """Size of the file system that holds `path` and what is free to this account, in bytes; None without it."""

    def run(self, name: str) -> Output:
        """The output of a command of the manifest."""

    def answer(self, port: int, path: str) -> Output:
        """What a server on loopback answers to GET."""

    def variable(self, name: str) -> str | None:
        """An environment variable of the account that asks."""


class LocalSource:
    """This machine. With a `root` other than "/" its files only: no command and no server of this machine counts."""

    def __init__(self, root: Path = Path("/"), limit_s: float = COMMAND_LIMIT_S):
        self.root = root
        self.limit_s = limit_s
        self.whole = root == Path("/")

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        data = self.data(path)
        return None if data is None else data.replace(b"\0", b"\n").decode(errors="replace").strip() or None

    def data(self, path: str) -> bytes | None:
        try:
            # without O_NONBLOCK a pipe where a file should be would be waited for
            descriptor = os.open(self._at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                return file.read(TEXT_BYTES)
        except OSError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._at(folder)))
        except OSError:
            return []

    def sizes(self, folder: str) -> dict[str, int | None] | None:
        found: dict[str, int | None] = {}
        try:
            with os.scandir(self._at(folder)) as entries:
                for entry in entries:
                    try:
                        found[entry.name] = -1 if entry.is_dir() else entry.stat().st_size
                    except OSError:
                        found[entry.name] = None
        except OSError:
            return None
        return found

    def link(self, path: str) -> str | None:
        try:
            target = os.path.realpath(self._at(path), strict=True)
        except OSError:
            return None
        root = os.path.realpath(self.root)
        return target if self.whole else "/" + os.path.relpath(target, root)

    def space(self, path: str) -> tuple[int, int] | None:
        try:
            found = os.statvfs(self._at(path))
        except OSError:
            return None
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def run(self, name: str) -> Output:
        if not self.whole:
            return Output(problem="only files are looked at below another root")
        words = COMMANDS[name]
        program = shutil.which(words[0])
        if program is None:
            return Output(problem=f"{words[0]} is not installed")
        return run_limited([program, *words[1:]], self.limit_s)

    def answer(self, port: int, path: str) -> Output:
        if not self.whole:
            return Output(problem="only files are looked at below another root")
        # no proxy, whatever the environment says: the server is on this machine
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_LIMIT_S) as reply:
                return Output(text=reply.read(ANSWER_BYTES).decode(errors="replace"))
        except urllib.error.HTTPError as error:
            return Output(problem=f"port {port} answers {error.code} to {path}")
        except (OSError, ValueError) as error:
            return Output(problem=f"port {port} does not answer ({error})")

    def variable(self, name: str) -> str | None:
        return os.environ.get(name) if self.whole else None


def run_limited(words: list[str], limit_s: float) -> Output:
    """Run a command, which is ended with all its group after `limit_s`; it cannot keep its caller waiting.

    Not subprocess.run: that waits for a killed process, and one that hangs in the driver does not die.
    """
    program = os.path.basename(words[0])
    try:
        process = children.start(words, stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        return Output(problem=f"{words[0]} cannot be run ({error.strerror})")
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Output(problem=f"{program} gave no answer within {limit_s:g} s")
    except ValueError:
        return Output(problem=f"{program} was ended with the program")
    finally:
        children.end(process)
    text = out.decode(errors="replace")
    if process.returncode != 0:
        lines = (err.decode(errors="replace").strip() or text.strip()).splitlines() or [f"code {process.returncode}"]
        return Output(problem=f"{program} failed: {lines[0][:200]}")
    return Output(text=text)


def run_all(source: Source, names: list[str]) -> dict[str, Output]:
    """The outputs of several commands, asked for side by side."""
    outcomes = side_by_side({name: Probe(partial(source.run, name), 2 * COMMAND_LIMIT_S) for name in names})
    return {name: outcome.value or Output(problem=outcome.problem) for name, outcome in outcomes.items()}
