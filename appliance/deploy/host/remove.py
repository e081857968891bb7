"""Take the appliance off a host of the systemd kind."""

from collections.abc import Iterator

from appliance.deploy.host.state import HostState
from appliance.deploy.host.systemd_kind import SystemdKind


def remove_from(state: HostState, kind: SystemdKind, services) -> Iterator[str]:
    """Remove units, profile and links; enable and start what gave way. Yields what is done, a line each."""
    running = kind.running()
    kind.remove()
    yield f"removed {running}" if running else "no appliance was there"
    gave_way = {s.unit: s for r in state.history().records if r.outcome == "committed" for s in r.stopped}
    for service in gave_way.values():
        if service.was_enabled:
            services.enable(service.unit, True)
        if service.was_active:
            services.start([service.unit])
            yield f"started {service.unit}"
