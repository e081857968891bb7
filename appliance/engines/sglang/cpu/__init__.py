"""The CPU engine: real SGLang on a machine without a GPU, with labelled stand-ins for what has no CPU build."""

import glob
from pathlib import Path

from appliance.errors import InputError

STANDINS = Path(__file__).parent / "standins"


def environment() -> dict[str, str]:
    """Environment that puts the stand-ins and their plugin on the path. Raises InputError beside a GPU."""
    if glob.glob("/dev/nvidia[0-9]*"):
        raise InputError(
            "engine.device is 'cpu' on a machine with NVIDIA devices (/dev/nvidia*); "
            "expected 'cuda': the CPU engine's stand-ins are for machines without a GPU"
        )
    return {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(STANDINS)}
