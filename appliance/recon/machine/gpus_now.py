"""GPUs at this moment: memory, power, temperature, what lowers their clocks."""

import json
import subprocess
import sys
from pathlib import Path

from appliance.documents import GpuNow

CHILD = Path(__file__).parent / "probes" / "nvml_child.py"
LIMIT_S = 5.0


def gpus_now(wanted: set[int]) -> list[GpuNow]:
    """The GPUs with these indices, by NVML in a child process; none without a driver, or where it does not answer."""
    if not wanted:
        return []
    try:
        done = subprocess.run([sys.executable, CHILD], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        found = json.loads(done.stdout).get("gpus", {})
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    return [now(int(index), facts) for index, facts in found.items() if int(index) in wanted]


def now(index: int, facts: dict) -> GpuNow:
    """One GPU from the child's facts."""
    return GpuNow(
        index=index,
        name=facts.get("name"),
        memory_used_mib=facts.get("memory_used_mib"),
        memory_mib=facts.get("memory_mib"),
        power_w=facts.get("power_draw_w"),
        temperature_c=facts.get("temperature_c"),
        throttled=facts.get("throttle_reasons"),
    )
