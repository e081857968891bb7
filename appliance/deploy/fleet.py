"""Several hosts: the first one alone, then the others side by side; after a failure none is begun any more."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

from appliance.errors import ApplianceError


class Outcome(NamedTuple):
    """What became of one host."""

    host: str
    state: Literal["done", "failed", "not begun"]
    text: str = ""
    exit_code: int = 0


def everywhere(hosts: list[str], deploy: Callable[[str], str], at_once: int) -> list[Outcome]:
    """Call `deploy` for each host: the first is the canary. It returns what is to be said, or raises ApplianceError.

    Deploys that are under way when another one fails come to their own end: each host decides for itself.
    """
    failed = threading.Event()

    def one(host: str) -> Outcome:
        if failed.is_set():
            return Outcome(host, "not begun", "another host failed before")
        try:
            return Outcome(host, "done", deploy(host))
        except ApplianceError as error:
            failed.set()
            return Outcome(host, "failed", str(error), error.exit_code)

    outcomes = [one(host) for host in hosts[:1]]
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        return outcomes + list(pool.map(one, hosts[1:]))
