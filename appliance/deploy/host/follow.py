"""The journal as it grows."""

import time
from collections.abc import Iterator

from appliance.deploy.host.state import HostState
from appliance.documents.deploy import DeployJournal

LOOK_EVERY_S = 0.2
HEARTBEAT_S = 5.0
NOBODY_S = 10.0
"""Without a holder of the lock: a switch that was killed is followed by its recovery within less."""


def journals(state: HostState, id: str) -> Iterator[DeployJournal]:
    """The journal of deploy `id` whenever it changes, and every 5 s, until it has ended or nobody goes on with it."""
    seen, at, held_at = None, 0.0, time.monotonic()
    while True:
        journal = state.journal()
        if journal is None or journal.request.id != id:
            return
        if journal != seen or time.monotonic() - at > HEARTBEAT_S:
            yield journal  # the repetition finds out that nobody listens any more
            seen, at = journal, time.monotonic()
        if state.holder() is not None:
            held_at = time.monotonic()
        if journal.ended() or time.monotonic() - held_at > NOBODY_S:
            return
        time.sleep(LOOK_EVERY_S)
