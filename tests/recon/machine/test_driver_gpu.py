"""The two ways to ask the driver, on a machine that has one."""

import shutil

import pytest

from appliance.recon.machine.probes import gpus
from appliance.recon.machine.source import LocalSource, Output

pytestmark = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA driver here")
MOVING = {"memory_used_mib", "power_draw_w", "temperature_c", "throttle_reasons", "processes"}


def lasting(facts: dict) -> dict:
    return {index: {n: v for n, v in gpu.items() if n not in MOVING} for index, gpu in facts.items()}


def test_nvml_and_nvidia_smi_tell_the_same(monkeypatch):
    nvml = gpus.from_driver(LocalSource())
    assert nvml.sources["driver_gpus"] == "NVML"
    monkeypatch.setattr(gpus, "nvml_facts", lambda limit_s: Output(problem="NVML: left out"))
    smi = gpus.from_driver(LocalSource())
    assert smi.sources["driver_gpus"].startswith("nvidia-smi")
    assert lasting(nvml.facts["driver_gpus"]) == lasting(smi.facts["driver_gpus"])
