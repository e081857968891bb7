"""Files from a folder or from another host by rsync: the field's tool, which goes on within a file and repairs it."""

import os
import re
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path

from appliance.documents.checkpoint import CheckpointManifest
from appliance.errors import ApplianceError, InputError, ProbeIncomplete
from appliance.fetch.download import length_of
from appliance.fetch.layout import MANIFEST
from appliance.fetch.pace import Pace
from appliance.fetch.wanted import Wanted
from appliance.launch.parent import die_with_parent
from appliance.recon import children

REMOTE = re.compile(r"^[^/:]+:")
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10"
SILENCE_S = 60
LOOK_S = 0.5
SSH_FAILED, PARTIAL_TRANSFER = 255, 23
SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


class RsyncSource:
    """A folder with a manifest, here ("/mnt/model") or on a host ("user@host:/srv/model")."""

    def __init__(self, where: str, rate: int | None = None):
        self.where = where
        self._root = where if REMOTE.match(where) else str(Path(where).absolute())
        self._rate = rate

    def manifest(self) -> CheckpointManifest:
        """What the folder has. Raises InputError, ProbeIncomplete."""
        if not REMOTE.match(self.where) and not Path(self.where, MANIFEST).is_file():
            raise self._without_manifest()
        with tempfile.TemporaryDirectory() as scratch:
            self._run([MANIFEST], Path(scratch), lambda: None)
            if not Path(scratch, MANIFEST).is_file():
                raise self._without_manifest()
            text = Path(scratch, MANIFEST).read_text(encoding="utf-8", errors="replace")
        return CheckpointManifest.parse(text, where=f"{self.where}/{MANIFEST}")

    def bring_all(self, files: list[Wanted], folder: Path, pace: Pace) -> None:
        """Make a copy of each of `files` in `folder`, going on with what is there; the content is not judged."""
        told = sum(length_of(folder / file.name) for file in files)

        def tell() -> None:
            nonlocal told
            there = sum(length_of(folder / file.name) for file in files)
            pace.add(there - told)
            told = there

        self._run([file.name for file in files], folder, tell)
        tell()

    def _without_manifest(self) -> InputError:
        return InputError(f"{self.where}: no {MANIFEST} there; expected a revision that `appliance fetch` made")

    def _run(self, names: list[str], to: Path, on_look) -> None:
        limit = [f"--bwlimit={max(1, self._rate // 1024)}"] if self._rate else []
        # in place and by difference: half a file is gone on with, a wrong one repaired; a like time proves nothing
        how = ["--from0", "--files-from=-", "--copy-links", "--inplace", "--no-whole-file", "--ignore-times"]
        words = ["rsync", *how, "--secluded-args", f"--timeout={SILENCE_S}", *limit, "-e", SSH]
        words += ["--", f"{self._root.rstrip('/')}/", f"{to}/"]
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
        try:
            process = children.start(
                words,
                stdin=subprocess.PIPE,
                env=environment | {"LC_ALL": "C"},
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        except OSError as error:
            raise InputError(f"rsync cannot be run ({error.strerror}); expected it on PATH") from None
        said: list[bytes] = []
        talk = threading.Thread(
            target=lambda: said.extend(process.communicate(b"\0".join(map(os.fsencode, names)))), daemon=True
        )
        talk.start()
        try:
            while talk.is_alive():
                talk.join(LOOK_S)
                on_look()
        finally:
            children.end(process)
        if process.returncode:
            raise self._failure(process.returncode, said[1].decode(errors="replace") if len(said) > 1 else "")

    def _failure(self, code: int, text: str) -> ApplianceError:
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("rsync error:")]
        line = (lines or [f"rsync ended with {code}"])[0]
        if code == PARTIAL_TRANSFER and MANIFEST in line and "No such file" in line:
            return self._without_manifest()
        if code == PARTIAL_TRANSFER:
            return InputError(f"{self.where}: cannot be copied whole ({line})")
        what = "cannot be reached" if code == SSH_FAILED else "broke off"
        return ProbeIncomplete(f"{self.where}: {what} ({line})")
