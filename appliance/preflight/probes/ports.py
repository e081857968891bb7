"""Bind every port of the plan for real, all at once, as its servers will."""

import socket

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe, Subject


def specify(subject: Subject) -> dict:
    """The plan's listeners, with the address that each binds."""
    return {"listeners": [[name, subject.plan.address_of(name), port] for name, port in subject.plan.listeners()]}


PROBE = LiveProbe(
    name="ports",
    title="ports of the plan",
    module=__name__,
    limit_s=2,
    why_not=lambda subject: None if subject.plan else "no plan was given",
    specify=specify,
)


def main(spec: dict, teller: Teller) -> None:
    """Bind and listen on all of them together; those that cannot be bound are told with the reason."""
    from appliance.preflight.ports import why_not

    held = []
    refused = 0
    for name, host, port in spec["listeners"]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen()
            held.append(listener)
        except OSError as error:
            listener.close()
            refused += 1
            teller.fact(f"refused {port} ({name})", why_not(host, port) or error.strerror)
    teller.measure("ports bound", len(held), "count")
    teller.measure("ports refused", refused, "count", better="lower")


if __name__ == "__main__":
    run(main)
