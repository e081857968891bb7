"""Serves the live page on loopback: to this machine's own users, and to nobody's scripts from elsewhere."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from appliance.documents import RuleResult, Status
from appliance.errors import InputError
from appliance.web.status_page import status_page

HOST = "127.0.0.1"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}


class Findings:
    """What preflight found, once it has looked: that takes seconds, and the page does not wait for it.

    `look` gives the results that have findings.
    """

    def __init__(self, look: Callable[[], list[RuleResult]]):
        self._found: list[RuleResult] = []
        self.words = "preflight is looking"
        self._look = look
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._found = self._look()
            self.words = "preflight has looked" if self._found else "preflight has looked and found nothing"
        except Exception as error:  # the page goes on without
            self.words = f"preflight could not look: {error}"

    def rows(self) -> list[dict]:
        """The findings for the page."""
        return [
            {"severity": finding.severity, "rule": result.rule, "evidence": finding.evidence}
            for result in self._found
            for finding in result.findings
        ]


def server(port: int, status: Callable[[], Status | None], findings: Findings) -> ThreadingHTTPServer:
    """A server on loopback, bound but not serving yet; port 0: any free one. Raises InputError where it cannot bind."""
    text = status_page().encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # a name that somebody made point to 127.0.0.1 must not open this page to that somebody's scripts
            name, _, _ = (self.headers.get("Host") or "").partition(":")
            if name not in (HOST, "localhost"):
                self._answer(403, "text/plain", b"expected to be asked as 127.0.0.1 or localhost\n")
            elif self.path == "/":
                self._answer(200, "text/html; charset=utf-8", text)
            elif self.path == "/status.json":
                found = status()
                data = {
                    "status": None if found is None else found.model_dump(mode="json"),
                    "findings": findings.rows(),
                    "checked": findings.words,
                }
                self._answer(200, "application/json", json.dumps(data).encode())
            else:
                self._answer(404, "text/plain", b"expected / or /status.json\n")

        def _answer(self, code: int, kind: str, data: bytes) -> None:
            self.send_response(code)
            for header, value in {"Content-Type": kind, "Content-Length": str(len(data)), **HEADERS}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args) -> None:
            """Nothing: the terminal shows the address, and that is enough."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise InputError(f"--port {port}: cannot be bound ({error.strerror}); expected a free port, or 0") from None
