"""Files of the hub, by range requests through huggingface_hub's session.

Not by hf_hub_download: it throws away what an interrupted run had of a file, has no limit of its rate, and without xet
refuses files of more than 50 GB. Addresses, headers, session, settings and errors are huggingface_hub's.
"""

from pathlib import Path

import httpx
from huggingface_hub import constants, hf_hub_url
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from appliance.errors import InputError
from appliance.fetch.pace import Pace
from appliance.fetch.wanted import Wanted
from appliance.recon.model.hub_errors import TRANSIENT, hub_error

TRIES = 5
"""Attempts in a row that bring no byte, until it is given up."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 120
"""A hub that wants more patience than that ends the fetch: it goes on where it was at the next start."""
AGAIN = {408, 429, 500, 502, 503, 504}


class HubSource:
    """The content of the files of one repository at one commit."""

    def __init__(self, model: str, revision: str, where: str, token: str | None):
        self.model, self.revision, self.where = model, revision, where
        self._headers = build_hf_headers(token=token) | {"accept-encoding": "identity"}

    def bring(self, file: Wanted, part: Path, pace: Pace) -> None:
        """Make `part` as long as `file`, going on with what it has. Raises InputError, ProbeIncomplete, Stopped."""
        if length_of(part) > file.size:
            part.unlink()
        if file.size == 0:
            part.touch()
        failures = 0
        while (have := length_of(part)) < file.size:
            try:
                self._stream(file, part, have, pace)
                problem = httpx.RemoteProtocolError("the body ended early")
            except (httpx.HTTPError, OfflineModeIsEnabled) as error:
                problem = error
            if length_of(part) >= file.size:
                return
            failures = 1 if length_of(part) > have else failures + 1
            wait = self._wait(problem, failures)
            if wait is None:
                raise hub_error(problem, f"{self.where}: {file.name}", attempts=failures) from None
            pace.pause(wait)

    def _wait(self, error: Exception, failures: int) -> float | None:
        """Seconds until it is tried again; None: never."""
        response = getattr(error, "response", None)
        asked = 0.0
        if isinstance(response, httpx.Response):
            if response.status_code not in AGAIN:
                return None
            after = response.headers.get("retry-after", "")
            asked = float(after) if after.isdigit() else 0.0
        elif not isinstance(error, TRANSIENT):
            return None
        if failures >= TRIES or asked > LONGEST_WAIT_S:
            return None
        return max(asked, FIRST_WAIT_S * 2 ** (failures - 1))

    def _stream(self, file: Wanted, part: Path, have: int, pace: Pace) -> None:
        url = hf_hub_url(self.model, file.name, revision=self.revision)
        headers = self._headers | ({"range": f"bytes={have}-"} if have else {})
        with get_session().stream("GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT) as response:
            if response.status_code >= 400:
                response.read()
            hf_raise_for_status(response)
            with Part(part, keep=response.status_code == 206) as out:
                if response.status_code != 206:
                    pace.add(-have)
                    have = 0
                for piece in response.iter_bytes():
                    piece = piece[: file.size - have]
                    out.write(piece)
                    have += len(piece)
                    pace.add(len(piece))


class Part:
    """A file that is appended to, every piece at once: what came before a kill is there after it."""

    def __init__(self, path: Path, keep: bool):
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab" if keep else "wb", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from None

    def write(self, piece: bytes) -> None:
        """Append all of `piece`. Raises InputError, a full disk for one."""
        left = memoryview(piece)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise unwritable(self._path, error) from None

    def __enter__(self) -> "Part":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()


def unwritable(path: Path, error: OSError) -> InputError:
    """One line for a write that failed."""
    return InputError(f"{path}: cannot be written ({error.strerror}); what was fetched is kept")


def length_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
