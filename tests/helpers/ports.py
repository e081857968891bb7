"""Port ranges for plans, so that no two tests and no other program meet on one."""

import itertools
import socket

from appliance.plan.ports import SPAN, PortRange

_bases = itertools.count(20000, SPAN)


def free_range() -> PortRange:
    """A range of ports of which none is bound on loopback now, never given out before in this process."""
    for base in _bases:
        if all(is_free(port) for port in range(base, base + SPAN)):
            return PortRange(base)
    raise AssertionError("no free range of ports")


def is_free(port: int) -> bool:
    """Whether `port` can be bound on loopback."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
