"""Where figures come from: a record that does not say so cannot be compared with another."""

import hashlib
import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from appliance.documents import EngineReport, MachineReport, Plan, Stamp

STORE = Path("/nix/store")
TIMEOUT_S = 30.0
# nvmlDeviceGetP2PStatus(NVML_P2P_CAPS_INDEX_READ): 0 is NVML_P2P_STATUS_OK (NVML API reference).
CHILD = """
import itertools, json, sys
import pynvml
pynvml.nvmlInit()
handles = {index: pynvml.nvmlDeviceGetHandleByIndex(index) for index in json.loads(sys.argv[1])}
print(json.dumps({f"{a}-{b}": pynvml.nvmlDeviceGetP2PStatus(handles[a], handles[b], 0) == 0
                  for a, b in itertools.combinations(handles, 2)}))
"""


def stamp(plans: list[Plan], machine: MachineReport, engine: EngineReport) -> Stamp:
    """The stamp of a run of `plans`, and what it lacks."""
    gpus = sorted({gpu for plan in plans for worker in plan.workers for gpu in worker.gpus})
    closure, basis = closure_hash()
    versions = {name: version for name, version in engine.packages.items() if version}
    versions |= {"sglang": engine.version} if engine.version else {}
    versions |= {"python": engine.python} if engine.python else {}
    limits = {gpu.index: gpu.power_limit_w for gpu in machine.gpus}
    power = [limits.get(gpu) for gpu in gpus]
    peers = peer_to_peer(gpus) if gpus else None
    missing = ["the engine's version"] if engine.version is None else []
    missing += [] if closure else ["the closure's hash"]
    if gpus:
        missing += [] if machine.driver else ["the driver's version"]
        missing += ["the power limits"] if None in power else []
        missing += ["the peer-to-peer state"] if peers is None else []
    return Stamp(
        closure=closure,
        closure_basis=basis,
        versions=versions,
        driver=machine.driver,
        power_limits_w=power if gpus and None not in power else None,
        peer_to_peer=peers,
        missing=missing,
    )


def closure_hash() -> tuple[str | None, str | None]:
    """The hash of everything that is installed, and what it was made of.

    From the Nix store: the environment's own hash, which covers all that it needs. Elsewhere sha256 over the RECORD
    files of all installed distributions, which hold the hash of every file of each (PEP 376, PEP 427).
    """
    prefix = Path(sys.prefix).resolve()
    if STORE in prefix.parents:
        return prefix.relative_to(STORE).parts[0].split("-", 1)[0], "Nix store path of the environment"
    digest = hashlib.sha256()
    records = {}
    for distribution in distributions():
        records[distribution.metadata["Name"] or ""] = f"{distribution.version}\n{distribution.read_text('RECORD')}"
    if not records:
        return None, None
    for name in sorted(records):
        digest.update(f"{name}\n{records[name]}\n".encode())
    return digest.hexdigest(), "RECORD files of the installed distributions"


def peer_to_peer(gpus: list[int]) -> dict[str, bool] | None:
    """Whether the driver lets each pair read each other's memory; None where it does not tell."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps(gpus)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
