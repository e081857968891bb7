"""The journal as it grows."""

import time
from collections.abc import Iterator

from appliance.deploy.host.state import HostState
from appliance.documents.deploy import DeployJournal

LOOK_EVERY_S = 0.2
HEARTBEAT_S = 5.0


def journals(state: HostState, id: str) -> Iterator[DeployJournal]:
    """The journal of deploy `id` whenever it changes, and every 5 s, until it has ended or another one has begun."""
    seen, at = None, 0.0
    while True:
        journal = state.journal()
        if journal is None or journal.request.id != id:
            return
        if journal != seen or time.monotonic() - at > HEARTBEAT_S:
            yield journal  # the repetition finds out that nobody listens any more
            seen, at = journal, time.monotonic()
        if journal.ended():
            return
        time.sleep(LOOK_EVERY_S)
