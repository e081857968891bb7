"""The transient unit that switches: it belongs to the host's systemd, so a lost connection does not end it."""

import os
import time

from appliance.deploy.host.kind import PROGRAM
from appliance.deploy.host.state import HostState, durable
from appliance.deploy.host.systemctl import call
from appliance.documents.deploy import DeployRequest
from appliance.errors import CheckFailed

UNIT = "appliance-deploy.service"
ROLLBACK_LIMIT_S = 7200
NIX_PATHS = "/run/current-system/sw/bin:/nix/var/nix/profiles/default/bin"
BEGINS_WITHIN_S = 15.0


def start_unit(state: HostState, request: DeployRequest) -> None:
    """Start the switch. Raises CheckFailed where another deploy goes on, with who holds the host."""
    holder = state.holder()
    if holder:
        raise CheckFailed(f"another deploy is going on: {holder}")
    program = f"{request.generation}/{PROGRAM}"
    durable(request, state.request_file(request.id))
    words = ["systemd-run", f"--unit={UNIT}", "--collect", "--service-type=exec", "--quiet"]
    words += [f"--description=appliance deploy {request.id}", f"--setenv=PATH={os.environ.get('PATH', '')}:{NIX_PATHS}"]
    # whatever ends it, the kernel's OOM killer too: what it left half done is undone
    words += [f"--property=ExecStopPost={program} deploy-host recover --folder {state.folder}"]
    words += [f"--property=TimeoutStopSec={ROLLBACK_LIMIT_S}", "--property=KillMode=mixed"]
    words += ["--property=OOMScoreAdjust=-900"]
    words += ["--", program, "deploy-host", "run", request.id, "--folder", str(state.folder)]
    done = call(words)
    if done.returncode != 0:
        holder = state.holder()
        said = f"another deploy is going on: {holder}" if holder else f"systemd-run: {done.stderr.strip()}"
        raise CheckFailed(said)
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while time.monotonic() < deadline:
        journal = state.journal()
        if journal is not None and journal.request.id == request.id:
            return
        time.sleep(0.1)
    said = call(["journalctl", f"--unit={UNIT}", "--lines=5", "--output=cat", "--no-pager"]).stdout
    raise CheckFailed(f"{UNIT} did not begin within {BEGINS_WITHIN_S:g} s: {' '.join(said.split())}")
