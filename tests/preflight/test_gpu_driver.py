"""The calls of CUDA's driver API, against a stand-in library that was compiled with NVIDIA's own header."""

import glob
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.documents import MachineReport
from appliance.documents.machine import Gpu
from appliance.preflight.measure import known_probes
from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import Subject

HEADERS = glob.glob("/usr/local/cuda*/include/cuda.h") + glob.glob(
    os.environ.get("CUDA_HOME", "/none") + "/include/cuda.h"
)
STANDIN = Path(__file__).with_name("gpu_standin.c")
TWO = MachineReport(gpus=[Gpu(index=0, name="stand-in"), Gpu(index=1, name="stand-in")])

pytestmark = pytest.mark.skipif(
    not HEADERS or not shutil.which("cc"), reason="needs a C compiler and cuda.h (CUDA_HOME or /usr/local/cuda)"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A folder with the stand-in as libcuda.so.1."""
    folder = tmp_path_factory.mktemp("cuda")
    words = ["cc", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{Path(HEADERS[0]).parent}", str(STANDIN)]
    subprocess.run([*words, "-o", str(folder / "libcuda.so.1")], check=True, capture_output=True)
    return folder


def measured(name: str, library: Path, machine: MachineReport = TWO):
    probe = known_probes()[name]
    with_library = replace(probe, environment=lambda subject: subject.environment() | {"LD_LIBRARY_PATH": str(library)})
    result = watchdog.run(with_library, Subject(machine, patience=5))
    assert result.status == "measured", result
    assert result.device == "stand-in"
    return {measure.name: measure.value for measure in result.measures}, result.facts


def test_pairs_are_copied_and_the_bytes_arrive(library):
    values, facts = measured("peers", library)
    ways = [f"GPU{a} -> GPU{b} {kind}" for a, b in ((0, 1), (1, 0)) for kind in ("write", "read")]
    names = [*ways, *(f"{way}, 4 KiB" for way in ways)]
    assert set(values) == set(names) and facts == {}


def test_one_gpu_copies_within_itself(library):
    values, _ = measured("peers", library, MachineReport(gpus=TWO.gpus[:1]))
    assert set(values) == {"GPU0 -> GPU0 write", "GPU0 -> GPU0 write, 4 KiB"}


def test_the_library_that_resolves_is_named(library):
    values, facts = measured("libcuda", library)
    assert facts == {"library": f"{library}/libcuda.so.1", "CUDA of the driver": "13.0", "cuInit": "CUDA_SUCCESS"}
    assert values == {"devices": 2}


def test_memory_of_one_process_is_opened_by_another(library, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    values, facts = measured("sandbox", library)
    assert values["CUDA IPC"] == 1 and facts["CUDA IPC"] == "read"
