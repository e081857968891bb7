"""A checkpoint on the hub, through huggingface_hub: its files' sizes and hashes, configuration, index, and the headers
of its weight files by range requests. No weight is downloaded, no file of the model is kept.

HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN and the token's file are huggingface_hub's own affair. A token is sent to the
hub's host only (httpx drops it where a redirect leads elsewhere) and appears in no message.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
from huggingface_hub import HfApi, constants, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from appliance.errors import InputError
from appliance.recon.concurrency import some_at_once
from appliance.recon.model.checkpoint import CONFIG, INDEX, QUANT_FILE, Checkpoint, Shard, parse_object, read_index
from appliance.recon.model.folder import also, read_folder
from appliance.recon.model.hub_errors import TRANSIENT, hub_error
from appliance.recon.safetensors_header import (
    LENGTH_BYTES,
    LONGEST_HEADER,
    WeightFileError,
    faults,
    parse_header,
    require_size,
    require_start,
)

READERS = 8  # more only wait for one another: a header is parsed while others are on their way
TRIES = 3
FIRST_BYTES = 100_000
BYTES_A_TENSOR = 130
"""Of a header, beside the tensor's name: type, shape, offsets, punctuation. Generous, so that one request suffices."""
LARGEST_JSON = 100_000_000
Progress = Callable[[int, int], None]


def read_hub(repo: str, revision: str | None = None, on_progress: Progress = lambda done, total: None) -> Checkpoint:
    """The checkpoint in the hub's repository `repo` ("org/name") at `revision` (branch, tag or commit).

    Offline (HF_HUB_OFFLINE) it is the snapshot in the local cache. Raises InputError where the hub refuses or has no
    such thing, ProbeIncomplete where it could not be reached or broke off.
    """
    if constants.is_offline_mode():
        return from_cache(repo, revision)
    hub = Hub(repo, revision)
    files = hub.files()
    if CONFIG not in files:
        raise InputError(f"{hub.where}: no {CONFIG} in the repository; expected a model")
    config = hub.json(CONFIG)
    quant_file = hub.json(QUANT_FILE) if QUANT_FILE in files else None
    weight_map = size = None
    if INDEX in files:
        weight_map, size = read_index(hub.json(INDEX), f"{hub.where}: {INDEX}")
    named = set(weight_map.values()) if weight_map is not None else set()
    there = {name for name in files if name.endswith(".safetensors") and ("/" not in name or name in named)}
    lengths = header_lengths(weight_map or {})
    shards: list[Shard] = []
    calls = [partial(hub.shard, files[name], lengths.get(name, FIRST_BYTES)) for name in sorted(there)]
    tasks = some_at_once(calls, READERS)
    try:
        for task in tasks:
            shards.append(task.result())
            on_progress(len(shards), len(tasks))
    finally:  # an error, or Ctrl-C: requests that have not begun never will
        for task in tasks:
            task.cancel()
    return Checkpoint(
        path=repo,
        origin="hub",
        config=config,
        quant_file=quant_file,
        weight_map=weight_map,
        declared_size=size,
        shards=shards,
        missing=sorted(named - there),
        revision=hub.revision,
    )


def from_cache(repo: str, revision: str | None) -> Checkpoint:
    """The snapshot of `repo` in huggingface_hub's cache. Raises InputError where there is none."""
    try:
        config = try_to_load_from_cache(repo, CONFIG, revision=revision)
    except HFValidationError as error:
        raise InputError(f"{repo}: not a hub id ({first_line(error)}); expected org/name") from None
    if not isinstance(config, str):
        raise InputError(
            f"{repo}: offline (HF_HUB_OFFLINE is set), and the cache {constants.HF_HUB_CACHE} has no {CONFIG} of it; "
            "expected a cached snapshot, or the hub within reach"
        )
    snapshot = Path(config).parent
    return replace(read_folder(snapshot), path=repo, revision=snapshot.name)


def hub_hashes(repo: str, revision: str | None = None) -> dict[str, tuple[int, str]]:
    """(size, sha256) of each file of `repo` that the hub stores by its hash (LFS). Raises as read_hub does."""
    files = Hub(repo, revision).files()
    return {name: (file.size or 0, file.lfs.sha256) for name, file in files.items() if file.lfs is not None}


def header_lengths(weight_map: dict[str, str]) -> dict[str, int]:
    """For each file: bytes that surely hold its header, from the names of its tensors."""
    lengths: dict[str, int] = {}
    for tensor, file in weight_map.items():
        lengths[file] = lengths.get(file, 1000) + len(tensor) + BYTES_A_TENSOR
    return lengths


class Hub:
    """One repository on the hub. Every method raises InputError or ProbeIncomplete, in one line, with its name."""

    def __init__(self, repo: str, revision: str | None, token: str | None = None):
        """`token` None: the one that huggingface_hub finds in its own settings, if any."""
        self.repo = repo
        self.revision = revision
        self.where = f"{host_of(constants.ENDPOINT)}/{repo}" + (f"@{revision}" if revision else "")
        self._token = token
        self._headers = build_hf_headers(token=token)

    def files(self) -> dict[str, RepoSibling]:
        """The files of the repository with size and hash, by name; pins the revision to the commit that has them."""
        try:
            info = HfApi(token=self._token).model_info(
                self.repo, revision=self.revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT
            )
        except (httpx.HTTPError, OSError, HFValidationError, OfflineModeIsEnabled, ValueError, KeyError) as error:
            raise hub_error(error, self.where) from None
        self.revision = info.sha or self.revision
        return {file.rfilename: file for file in info.siblings or []}

    def json(self, name: str) -> dict:
        """The JSON object in the file `name`."""
        content, total = self.fetch(name, 0, LARGEST_JSON)
        if total is not None and total > len(content):
            raise InputError(f"{self.where}: {name} has {total} bytes; expected a JSON file of {LARGEST_JSON} at most")
        return parse_object(content, f"{self.where}: {name}")

    def shard(self, file: RepoSibling, length: int) -> Shard:
        """The weight file with its header; `length` is how much to ask for at first."""
        size = file.size or 0
        sha256 = file.lfs.sha256 if file.lfs is not None else None
        where = f"{self.where}: {file.rfilename}"
        found = Shard(file.rfilename, size, sha256)
        if size == 0:
            return replace(found, fault=("zero-length", f"{where}: empty file; expected safetensors"))
        content, total = self.fetch(file.rfilename, 0, max(length, LENGTH_BYTES))
        try:
            require_start(content, size, where)
            header = int.from_bytes(content[:LENGTH_BYTES], "little")
            end = LENGTH_BYTES + min(header, LONGEST_HEADER)
            if len(content) < end:
                content += self.fetch(file.rfilename, len(content), end)[0]
            tensors = parse_header(content[LENGTH_BYTES:end], where)
            require_size(tensors, header, size, where)
        except WeightFileError as error:
            return replace(found, fault=(error.kind, str(error)))
        if total is not None and total != size:
            words = f"{where}: {total} bytes are served, the repository lists {size}"
            return replace(found, tensors=tensors, fault=("changed", words))
        wrong = faults(tensors)
        fault = ("inconsistent", f"{where}: {wrong[0]}{also(len(wrong) - 1)}") if wrong else None
        return replace(found, tensors=tensors, fault=fault)

    def fetch(self, name: str, begin: int, end: int) -> tuple[bytes, int | None]:
        """(bytes `begin` to `end` of a file, or to its end; the whole file's size if the server says).

        A server that ignores the range is read up to `end` and hung up on. A connection that breaks is tried again.
        """
        for attempt in range(1, TRIES + 1):
            try:
                return self._fetch(name, begin, end)
            except TRANSIENT as error:
                if attempt == TRIES:
                    raise hub_error(error, f"{self.where}: {name}", attempts=TRIES) from None
            except (httpx.HTTPError, OSError, OfflineModeIsEnabled) as error:
                raise hub_error(error, f"{self.where}: {name}") from None
        raise AssertionError("unreachable")

    def _fetch(self, name: str, begin: int, end: int) -> tuple[bytes, int | None]:
        url = hf_hub_url(self.repo, name, revision=self.revision)
        headers = {**self._headers, "range": f"bytes={begin}-{end - 1}", "accept-encoding": "identity"}
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
            if response.status_code >= 400:
                response.read()
            hf_raise_for_status(response)
            skip = 0 if response.status_code == 206 else begin
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) >= skip + end - begin:
                    break
        return bytes(content[skip : skip + end - begin]), whole_size(response)


def whole_size(response: httpx.Response) -> int | None:
    """The size of the whole file behind a response, full or partial, if the server says."""
    if response.status_code == 206:
        total = response.headers.get("content-range", "").rpartition("/")[2]
    else:
        total = response.headers.get("content-length", "")
    return int(total) if total.isdigit() else None


def host_of(endpoint: str) -> str:
    """Host and path of an endpoint, for messages: without scheme, and without a password that may stand in it."""
    return endpoint.partition("://")[2].rpartition("@")[2] or endpoint


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
