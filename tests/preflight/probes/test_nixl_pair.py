"""The rate of a transfer, with a stand-in for NIXL's agent that says DONE before anything has moved."""

import time

from appliance.preflight.probes import nixl_pair


class Hasty:
    """Says DONE at once, as NIXL did for writes over sockets on an H200."""

    def transfer(self, _handle) -> str:
        return "DONE"


def test_a_write_counts_when_it_has_come(monkeypatch):
    monkeypatch.setattr(nixl_pair, "SECONDS_EACH", 0.2)
    seconds, asked = 0.02, []

    def came(count: int) -> None:
        asked.append(count)
        time.sleep(seconds * count)

    rate = nixl_pair.transfer_rate(Hasty(), None, came)
    assert 0.5 < rate / (nixl_pair.SIZE / seconds) <= 1.0
    assert asked[0] == 1 and set(asked[1:]) == {nixl_pair.AT_ONCE}
