"""The protocol towards systemd, received by a real datagram socket; the HTTP server is a stand-in for an engine.

With a real engine behind it: tests/e2e/test_launch.py.
"""

import asyncio
import contextlib
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from appliance.engines.sglang.health import generates
from appliance.launch.systemd import notify, report


class Engine(BaseHTTPRequestHandler):
    """Stand-in: answers /health_generate with the statuses it is told, the last one for ever."""

    statuses: list[int] = []

    def do_GET(self):
        assert self.path == "/health_generate"
        self.send_response(self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def engine(*statuses: int):
    handler = type("Handler", (Engine,), {"statuses": list(statuses)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def manager(address: str):
    """A socket on which the service manager would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + address[1:] if address.startswith("@") else address)
        listener.settimeout(10)
        yield listener


def received(listener) -> str:
    return listener.recv(4096).decode()


def test_ready_is_said_only_after_a_token(tmp_path):
    address = str(tmp_path / "notify")
    with manager(address) as listener, engine(503, 200) as url:
        asyncio.run(report(address, generates, generates, url, watchdog_s=None))
        assert received(listener) == f"STATUS=starting {url}"
        assert received(listener).startswith("READY=1\n")


def test_the_watchdog_is_fed_while_the_engine_answers_and_not_after(tmp_path):
    address = str(tmp_path / "notify")

    async def for_two_seconds(url):
        task = asyncio.create_task(report(address, generates, generates, url, watchdog_s=2))
        await asyncio.sleep(4)
        task.cancel()

    with manager(address) as listener, engine(200, 200, 200, 500) as url:
        asyncio.run(for_two_seconds(url))
        received(listener), received(listener)
        listener.settimeout(0.5)
        fed = 0
        try:
            while received(listener) == "WATCHDOG=1":
                fed += 1
        except TimeoutError:
            pass
        assert fed == 2  # the first answer was for READY=1


def test_the_watchdog_of_a_router_is_fed_while_it_lives_though_it_has_no_workers(tmp_path):
    address = str(tmp_path / "notify")
    became_ready = []

    async def ready(url, timeout_s=1.0):
        became_ready.append(url)
        return len(became_ready) == 1  # its workers are gone right after

    async def alive(url, timeout_s):
        return True

    async def for_a_second():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(report(address, ready, alive, "http://router", watchdog_s=1), timeout=1.1)

    with manager(address) as listener:
        asyncio.run(for_a_second())
        assert received(listener) == "STATUS=starting http://router"
        assert received(listener).startswith("READY=1\n")
        assert [received(listener) for _ in range(4)] == ["WATCHDOG=1"] * 4


def test_an_abstract_address():
    with manager("@appliance-test") as listener:
        notify("@appliance-test", "READY=1")
        assert received(listener) == "READY=1"
