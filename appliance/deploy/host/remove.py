"""Take the appliance off a host of the systemd kind."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from appliance.deploy.host.state import HostState
from appliance.deploy.host.systemctl import call
from appliance.deploy.host.systemd_kind import SystemdKind

CACHE = Path("/var/cache/sglang-appliance")
DATA = Path("/var/lib/sglang-appliance")
"""Of the user sglang: weights among it, which are kept."""
ROOT = Path("/nix/var/nix/gcroots/appliance-deploy")
USER = "sglang"


def remove_from(state: HostState, kind: SystemdKind, services) -> Iterator[str]:
    """Remove units, profile, user, caches and history; enable and start what gave way. Yields each thing done.

    Weights are kept, and said to be.
    """
    running = kind.running()
    kind.remove()
    ROOT.unlink(missing_ok=True)
    shutil.rmtree(CACHE, ignore_errors=True)
    yield f"removed {running}" if running else "no appliance was there"
    gave_way = {s.unit: s for r in state.history().records if r.outcome == "committed" for s in r.stopped}
    for service in gave_way.values():
        if service.was_enabled:
            services.enable(service.unit, True)
        if service.was_active:
            services.start([service.unit])
            yield f"started {service.unit}"
    for folder in (*DATA.glob("*"), DATA):
        with suppress(OSError):  # not empty, or not there
            folder.rmdir()
    if DATA.exists():
        yield f"kept {DATA}, which is not empty"
    else:
        call(["userdel", USER])
    shutil.rmtree(state.folder)
