"""The probes of GPUs on real ones; what one GPU can show, and with two the pairs and the all-reduce as well."""

import pytest

from appliance.documents import Plan, PlannedEngine, PlannedModel, Worker
from appliance.preflight.measure import known_probes
from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import Subject
from appliance.recon.engine import installed
from appliance.recon.machine import machine_report

MACHINE = machine_report()
GPUS = [gpu.index for gpu in MACHINE.gpus] if MACHINE.driver else []

pytestmark = pytest.mark.skipif(not GPUS, reason="no NVIDIA driver here")


def measure(name: str, plan: Plan | None = None):
    result = watchdog.run(known_probes()[name], Subject(MACHINE, plan, patience=4))
    assert result.status == "measured", result
    assert result.device == ", ".join(dict.fromkeys(gpu.name for gpu in MACHINE.gpus))
    return {measure.name: measure.value for measure in result.measures}, result.facts


def test_libcuda_is_the_drivers():
    values, facts = measure("libcuda")
    assert facts["cuInit"] == "CUDA_SUCCESS" and values["devices"] == len(GPUS)


def test_copies_arrive():
    values, _ = measure("peers")
    first = f"GPU0 -> GPU{GPUS[1] if len(GPUS) > 1 else 0} write"
    assert values[first] > 1


def test_memory_of_one_process_is_opened_by_another():
    values, facts = measure("sandbox")
    assert values["CUDA IPC"] == 1, facts


@pytest.mark.skipif(installed("nixl") is None, reason="nixl is not installed")
def test_nixl_writes_and_reads_gpu_memory():
    values, facts = measure("nixl-vram")
    assert values["VRAM WRITE"] > 0.1 and values["VRAM READ"] > 0.1
    assert facts["backend"] == "UCX"


@pytest.mark.skipif(len(GPUS) < 2 or installed("torch") is None, reason="needs torch and two GPUs")
def test_ranks_reduce_over_nccl():
    plan = Plan(
        topology="single",
        model=PlannedModel(path="/none", served_name="none"),
        engine=PlannedEngine(version="0", device="cuda"),
        workers=[Worker(name="single", role="aggregated", gpus=GPUS, tp_size=len(GPUS), port=39010)],
    )
    values, _ = measure("all-reduce", plan)
    assert len(values) == 2 and all(value > 0 for value in values.values())
