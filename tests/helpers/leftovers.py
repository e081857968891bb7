"""What a run could leave behind on this machine."""

import tempfile
from pathlib import Path

import psutil

RUN_NAMES = ("sglang", "smg", "appliance")


def snapshot() -> set[str]:
    """Processes of runs, their listening ports, shared memory and temporary folders, as they are now."""
    found = {f"shared memory {path.name}" for path in Path("/dev/shm").iterdir()}
    found |= {f"folder {path}" for path in Path(tempfile.gettempdir()).glob("appliance-*")}
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if process.pid != psutil.Process().pid and any(name in words for name in RUN_NAMES):
                found.add(f"process {process.pid} {words[:80]}")
                found |= {f"port {c.laddr.port}" for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
        except psutil.Error:
            continue
    return found
