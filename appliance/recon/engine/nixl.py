"""Which NIXL backends really load here: each is made once, in a process that may crash or hang."""

import json
import subprocess
import sys
import time

from appliance.documents import TransferBackend, TransportModule
from appliance.recon.absent import Absent
from appliance.recon.children import end, start

CHILD = "appliance.recon.engine.nixl_child"


class NoNixl(Absent):
    """NIXL cannot be imported, or its agent cannot be made."""


def nixl(limit_s: float) -> tuple[list[TransferBackend], list[TransportModule]]:
    """The plugins that NIXL lists and the UCX modules it ships, each with whether it loads. Raises NoNixl.

    A plugin that ends the process or hangs counts as not loading; those after it are tried in a new process.
    """
    deadline = time.monotonic() + limit_s
    backends: dict[str, TransferBackend] = {}
    modules: list[TransportModule] = []
    plugins: list[str] | None = None
    while True:
        lines, ending = said(list(backends), deadline)
        trying = None
        for line in lines:
            if "plugins" in line:
                plugins = line["plugins"]
            elif "module" in line:
                modules.append(TransportModule(name=line["module"], loads=line["loads"], reason=line["reason"]))
            elif "trying" in line:
                trying = line["trying"]
            elif "problem" in line:
                raise NoNixl(line["problem"])
            elif "backend" in line:
                backends[line["backend"]] = TransferBackend(
                    name=line["backend"], loads=line["loads"], reason=line["reason"]
                )
        if plugins is None:
            raise NoNixl(f"its probe {ending}")
        if trying and trying not in backends:
            backends[trying] = TransferBackend(name=trying, loads=False, reason=f"its process {ending}")
        elif ending == "ended with 0":
            break
        if time.monotonic() >= deadline:
            break
    for name in plugins:
        if name not in backends:
            backends[name] = TransferBackend(name=name, loads=False, reason="not tried: no time was left")
    return [backends[name] for name in sorted(backends)], modules


def said(tried: list[str], deadline: float) -> tuple[list[dict], str]:
    """What one child process wrote until it ended or the time was up, and how it ended."""
    process = start([sys.executable, "-W", "ignore", "-m", CHILD, *tried])
    try:
        out, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
        ending = f"ended with {process.returncode}"
    except subprocess.TimeoutExpired as error:  # it carries what was written until then
        out, ending = error.stdout or b"", "did not come back in time"
    finally:
        end(process)
    lines = []
    for line in out.decode(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue  # half a line of a process that was killed
    return lines, ending
