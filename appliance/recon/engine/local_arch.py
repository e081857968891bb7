"""The architecture of this machine's GPUs."""

import shutil

from appliance.errors import InputError
from appliance.recon.children import run
from appliance.recon.engine.arch import Arch

LIMIT_S = 10.0


def local_arch() -> Arch | None:
    """What nvidia-smi says of the first GPU; None where there is none or it does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        lines = run([tool, "--query-gpu=compute_cap", "--format=csv,noheader"], LIMIT_S)[1].split()
        return Arch.parse(lines[0]) if lines else None
    except (OSError, TimeoutError, InputError):
        return None
