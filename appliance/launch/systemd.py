"""Tell systemd about a worker or a router: ready after it has answered, and alive as long as it answers.

The protocol is one datagram (man sd_notify); the packages that wrap it are unmaintained or need a compiler.
Since `launch` execs the engine, a small companion process watches it and reports. A unit therefore needs
Type=notify and NotifyAccess=all.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from appliance.launch.parent import die_with_parent

Answers = Callable[..., Awaitable[bool]]
"""Called with a URL, and a time limit in seconds as `timeout_s`: whether what listens there serves now."""

FIRST_TRY_S = 1.0


def report_in_background(ready: Answers, alive: Answers, url: str, env: dict[str, str]) -> None:
    """Start the companion that reports on the process at `url`, if systemd asks for it (NOTIFY_SOCKET).

    Takes systemd's variables out of `env`, so that the engine does not report for itself.
    """
    address = env.pop("NOTIFY_SOCKET", None)
    watchdog_usec = env.pop("WATCHDOG_USEC", None)
    env.pop("WATCHDOG_PID", None)
    if address is None:
        return
    worker = os.getpid()
    if os.fork() == 0:
        if not die_with_parent(worker):
            os._exit(0)
        try:
            asyncio.run(report(address, ready, alive, url, int(watchdog_usec) / 1e6 if watchdog_usec else None))
        except BaseException as error:
            print(f"readiness companion: {error!r}", file=sys.stderr)
            os._exit(1)
        os._exit(0)


async def report(address: str, ready: Answers, alive: Answers, url: str, watchdog_s: float | None) -> None:
    """Send READY=1 once `ready` holds for `url` (a worker: it has generated a token), then feed the watchdog.

    WATCHDOG=1 is sent while `alive` holds: a router whose workers are gone is not ready, but it is not what has failed.
    Returns after READY=1 where no watchdog is asked for.
    """
    notify(address, f"STATUS=starting {url}")
    while not await ready(url):
        await asyncio.sleep(FIRST_TRY_S)
    notify(address, f"READY=1\nSTATUS=serving {url}")
    while watchdog_s is not None:
        if await alive(url, timeout_s=watchdog_s / 2):
            notify(address, "WATCHDOG=1")
        await asyncio.sleep(watchdog_s / 4)


def notify(address: str, message: str) -> None:
    """Send one sd_notify datagram to `address` (a path, or an abstract name that starts with "@")."""
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
        suppress(ConnectionRefusedError, BlockingIOError),  # systemd reloads itself: the next one will arrive
    ):
        sender.sendto(message.encode(), address)
