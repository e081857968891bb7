"""A small hub: what of its HTTP API recon and fetch use, over folders on disk, with faults on request.

Repository information with sizes and LFS hashes, resolve with ETag, X-Repo-Commit and X-Linked-* headers, redirects of
LFS files to a second host that knows ranges, errors as the hub words them (status and X-Error-Code). As a program,
`python -m tests.helpers.hub_server FOLDER`, it serves until it is killed, and prints its address first.
"""

import hashlib
import json
import sys
import threading
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "org/model"


@dataclass
class Hub:
    """A served repository. Faults may be set at any time; what was asked is kept."""

    folder: Path
    url: str = ""
    cdn: str = ""
    fault: tuple[int, str, dict[str, str]] | None = None
    """Status, X-Error-Code and headers of every answer."""
    file_fault: tuple[int, str, dict[str, str]] | None = None
    """The same for weight files alone."""
    cuts: int = 0
    """How many of the next answers of the second host break off in mid-body."""
    refusals: int = 0
    """How many of the next requests for weight files get `file_fault`; 0 with a `file_fault`: all of them."""
    corrupt: dict[str, int] = field(default_factory=dict)
    """By file name: how many of its next answers have a wrong byte."""
    rate: int | None = None
    """Bytes a second of one answer of the second host."""
    commit: str = COMMIT
    """What main is."""
    hang_s: float = 0
    """Seconds until an answer of the second host."""
    ranges: bool = True
    token: str | None = None
    """Where set, requests without it are turned away as for a private repository."""
    hashes: bool = True
    """Whether the repository lists sha256 hashes (costs reading the files once)."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Host ("hub" or "cdn"), path, headers in lower case."""
    sent: int = 0
    """Bytes of bodies that were sent."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lfs(self, path: Path) -> bool:
        return path.suffix == ".safetensors"


def siblings(hub: Hub) -> list[dict]:
    """The repository's files as the hub lists them with ?blobs=true."""
    listed = []
    for path in sorted(hub.folder.rglob("*")):
        if not path.is_file():
            continue
        entry = {"rfilename": str(path.relative_to(hub.folder)), "size": path.stat().st_size}
        entry["blobId"] = "0" * 40 if hub.lfs(path) else blob_of(path, path.stat().st_mtime_ns)
        if hub.lfs(path):
            digest = digest_of(path, path.stat().st_mtime_ns) if hub.hashes else "0" * 64
            entry["lfs"] = {"sha256": digest, "size": entry["size"], "pointerSize": 134}
        listed.append(entry)
    return listed


@cache
def digest_of(path: Path, changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def blob_of(path: Path, changed: int) -> str:
    """sha1 of the file as a blob of git."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub
    host = "hub"

    def log_message(self, *args) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.hub.lock:
            self.hub.requests.append((self.host, path, headers))
        try:
            self.cdn_file(path) if self.host == "cdn" else self.answer(path, headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, path: str, headers: dict[str, str]) -> None:
        hub = self.hub
        if hub.fault is not None:
            return self.refuse(*hub.fault)
        if hub.token is not None and headers.get("authorization") != f"Bearer {hub.token}":
            return self.refuse(401, "RepoNotFound", {"X-Error-Message": "Repository not found"})
        api, resolve = f"/api/models/{REPO}", f"/{REPO}/resolve/"
        if path == api or path.startswith(f"{api}/revision/"):
            revision = path.partition("/revision/")[2] or "main"
            if revision not in ("main", "v1", hub.commit):
                return self.refuse(404, "RevisionNotFound", {})
            info = {"id": REPO, "modelId": REPO, "sha": hub.commit, "private": False, "siblings": siblings(hub)}
            return self.send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
        if not path.startswith(resolve):
            return self.refuse(404, "RepoNotFound", {"X-Error-Message": "Repository not found"})
        revision, _, name = path.removeprefix(resolve).partition("/")
        file = hub.folder / name
        if revision != hub.commit:
            return self.refuse(404, "RevisionNotFound", {})
        if not file.is_file():
            return self.refuse(404, "EntryNotFound", {"X-Error-Message": "Entry not found"})
        marks = {"ETag": '"0"', "X-Repo-Commit": hub.commit, "Accept-Ranges": "bytes"}
        if not hub.lfs(file):
            return self.part(file, marks)
        if hub.file_fault is not None:
            fault = hub.file_fault
            with hub.lock:
                hub.refusals -= 1
                if hub.refusals == 0:
                    hub.file_fault = None
            return self.refuse(*fault)
        marks |= {"X-Linked-Size": str(file.stat().st_size), "X-Linked-Etag": '"0"'}
        return self.send(302, b"", marks | {"Location": f"{hub.cdn}/blob/{name}?signature=secret"})

    def cdn_file(self, path: str) -> None:
        if self.hub.hang_s:
            threading.Event().wait(self.hub.hang_s)
        self.part(self.hub.folder / path.removeprefix("/blob/"), {})

    def part(self, file: Path, headers: dict[str, str]) -> None:
        """A file, or the range of it that is asked for."""
        size, asked = file.stat().st_size, self.headers.get("Range")
        begin, end, status = 0, size, 200
        if asked and self.hub.ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end, status = int(first), min(int(last) + 1, size) if last else size, 206
            headers = headers | {"Content-Range": f"bytes {begin}-{end - 1}/{size}"}
        with self.hub.lock:
            cut = self.host == "cdn" and self.hub.cuts > 0
            self.hub.cuts -= cut
            name = str(file.relative_to(self.hub.folder))
            corrupt = self.hub.corrupt.get(name, 0) > 0
            self.hub.corrupt[name] = self.hub.corrupt.get(name, 0) - corrupt
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(end - begin)}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        with file.open("rb") as content:
            content.seek(begin)
            left = (end - begin) // 2 if cut else end - begin
            while left and (piece := content.read(min(left, 1 << 16))):
                if corrupt:
                    piece, corrupt = bytes([piece[0] ^ 1]) + piece[1:], False
                self.wfile.write(piece)
                left -= len(piece)
                if self.hub.rate and self.host == "cdn":
                    threading.Event().wait(len(piece) / self.hub.rate)
                with self.hub.lock:
                    self.hub.sent += len(piece)
        if cut:
            self.close_connection = True

    def refuse(self, status: int, code: str, headers: dict[str, str]) -> None:
        self.send(status, b"{}", headers | ({"X-Error-Code": code} if code else {}))

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class CdnHandler(Handler):
    host = "cdn"


def serve(hub: Hub, port: int = 0) -> list[ThreadingHTTPServer]:
    """Serve `hub` at `port` (0: a free one), and at a free one under another name.

    Returns the servers, to be shut down.
    """
    servers = []
    for handler, name in ((Handler, "127.0.0.1"), (CdnHandler, "localhost")):
        address = ("127.0.0.1", port if handler is Handler else 0)
        server = ThreadingHTTPServer(address, type(handler.__name__, (handler,), {"hub": hub}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        address = f"http://{name}:{server.server_port}"
        if handler is CdnHandler:
            hub.cdn = address
        else:
            hub.url = address
    return servers


if __name__ == "__main__":
    served = Hub(Path(sys.argv[1]), hashes=False)
    serve(served)
    print(served.url, flush=True)
    threading.Event().wait()
