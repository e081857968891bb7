"""NVML by a stand-in for its Python binding, in the real child process; nvidia-smi by a program of that name."""

import time

import pytest

from appliance.recon.machine.probes import gpus
from appliance.recon.machine.source import LocalSource
from tests.recon.machine.text.test_smi import QUERY

BINDING = """
from types import SimpleNamespace as Made
NVML_TEMPERATURE_GPU = 0
class NVMLError(Exception): pass
def nvmlInit(): {init}
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index):
    if index == 1: raise NVMLError("GPU is lost")
    return index
def nvmlSystemGetDriverVersion(): return "580.95.05"
def nvmlSystemGetCudaDriverVersion_v2(): return 13000
def nvmlDeviceGetPciInfo(gpu): return Made(busId="00000000:C1:00.0")
def nvmlDeviceGetName(gpu): return b"NVIDIA H200"
def nvmlDeviceGetMemoryInfo(gpu): return Made(total=2**37, used=2**20)
def nvmlDeviceGetBAR1MemoryInfo(gpu): raise NVMLError("Not Supported")
def nvmlDeviceGetCudaComputeCapability(gpu): return (9, 0)
def nvmlDeviceGetCurrentClocksThrottleReasons(gpu): return 0x1 | 0x4 | 0x40
def nvmlDeviceGetMigMode(gpu): return (0, 0)
def nvmlDeviceGetCurrPcieLinkGeneration(gpu): return 4
def nvmlDeviceGetPowerManagementLimit(gpu): return 700000
def nvmlDeviceGetTemperature(gpu, sensor): return 33
def nvmlDeviceGetComputeRunningProcesses(gpu):
    return [Made(pid=1, usedGpuMemory=2**30), Made(pid=2, usedGpuMemory=None)]
def nvmlDeviceGetGraphicsRunningProcesses(gpu): return []
def nvmlSystemGetProcessName(pid): return "python"
"""


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """Put a binding in front of the installed one, whose initialisation does what it is told."""

    def make(init: str) -> None:
        (tmp_path / "pynvml.py").write_text(BINDING.format(init=init))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return make


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Put an nvidia-smi on PATH that prints the detailed listing for -q."""
    (tmp_path / "query").write_text(QUERY)
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$1" = -q ] && exec cat {tmp_path / "query"}\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_what_nvml_gives_and_what_it_does_not_support(nvml):
    nvml("pass")
    found = gpus.from_driver(LocalSource())
    (facts,) = found.facts["driver_gpus"].values()
    assert (facts["pci_bus_id"], facts["name"], facts["compute_capability"]) == ("0000:c1:00.0", "NVIDIA H200", "9.0")
    assert (facts["memory_mib"], facts["power_limit_w"], facts["temperature_c"]) == (131072, 700, 33)
    assert facts["throttle_reasons"] == ["SW Power Cap", "HW Thermal Slowdown"]
    assert facts["pcie"] == {"gen": 4}
    assert [(entry.pid, entry.name, entry.memory_mib) for entry in facts["processes"]] == [
        (1, "python", 1024),
        (2, "python", None),
    ]
    assert "bar1_mib" not in facts
    assert found.facts["driver_versions"] == {"driver": "580.95.05", "cuda": "13.0"}
    assert found.notes == ["GPU 1: NVML: GPU is lost"]


def test_a_hung_driver_does_not_hang_recon(nvml, monkeypatch):
    nvml("__import__('time').sleep(600)")
    monkeypatch.setenv("PATH", "/nowhere")
    start = time.monotonic()
    found = gpus.from_driver(LocalSource(), nvml_limit_s=0.5)
    assert time.monotonic() - start < 3
    assert found.sources["driver_gpus"] == "absent: NVML gave no answer within 0.5 s; nvidia-smi is not installed"


def test_nvidia_smi_where_nvml_does_not_load(nvml, smi):
    nvml("raise NVMLError('Driver Not Loaded')")
    found = gpus.from_driver(LocalSource())
    assert found.sources["driver_gpus"] == "nvidia-smi (NVML: Driver Not Loaded)"
    assert len(found.facts["driver_gpus"]) == 2
    assert found.facts["driver_versions"]["driver"] == "580.95.05"


def test_a_binding_that_dies_is_said_to_have_failed(nvml, monkeypatch):
    nvml("__import__('os')._exit(7)")
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpus.from_driver(LocalSource()).sources["driver_gpus"].startswith("absent: NVML failed: code 7")
