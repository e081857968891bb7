"""Energy that GPUs have used, by NVML's own counter."""

import json
import subprocess
import sys

TIMEOUT_S = 20.0
# In a child process: a driver that hangs must not hold up the measurement, and NVML stays out of this process.
CHILD = """
import json, sys
import pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in json.loads(sys.argv[1])]
print(json.dumps([pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in handles]))
"""


def energy_j(gpus: list[int]) -> float | None:
    """Joules that these GPUs have used since the driver was loaded; None without GPUs, or where NVML does not tell.

    nvmlDeviceGetTotalEnergyConsumption counts millijoules (NVML API reference; Volta and newer).
    """
    if not gpus:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps(gpus)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return sum(json.loads(done.stdout)) / 1000
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
