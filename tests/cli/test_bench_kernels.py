"""`appliance bench kernels` as a user calls it, on a machine without a GPU."""

import json
import os
from pathlib import Path

import pytest

from appliance.documents import KernelBench
from tests.bench.kernels.conftest import document  # noqa: F401
from tests.helpers.cli import appliance, refused

KERNELS = Path(__file__).parents[2] / "pkgs" / "kernels"


@pytest.fixture
def saved(document, tmp_path) -> Path:  # noqa: F811
    file = tmp_path / "bench.json"
    KernelBench.model_validate(document).write(file)
    return file


def incomplete(**env: str) -> str:
    """The one line of a run that could not be made: exit code 3."""
    done = appliance("bench", "kernels", env=env)
    assert done.returncode == 3 and done.stdout == "", done
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_without_the_package_one_line_says_so():
    assert incomplete() == (
        "error: bench kernels: the package appliance_kernels is not installed; expected it beside the engine"
    )


def test_without_a_gpu_one_line_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    path = os.pathsep.join([str(KERNELS), os.environ.get("PYTHONPATH", "")])
    assert incomplete(PYTHONPATH=path) == "error: bench kernels: no CUDA GPU here"


def test_a_benchmark_that_dies_is_not_a_measurement(tmp_path):
    package = tmp_path / "appliance_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "bench.py").write_text("import sys; sys.exit('it broke')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert incomplete(PYTHONPATH=path) == "error: bench kernels: the benchmark ended with code 1: it broke"


def test_a_saved_run_is_shown_and_given_back_as_json(saved, document):  # noqa: F811
    table = appliance("bench", "kernels", "--from", saved)
    assert table.returncode == 0 and "indexer_logits" in table.stdout and "50.0 (10.0)" in table.stdout
    assert json.loads(appliance("bench", "kernels", "--from", saved, "--json").stdout) == json.loads(saved.read_text())


def test_runs_are_not_compared_with_each_other(saved):
    line = refused("bench", "kernels", "--from", saved, "--from", saved)
    assert "two runs, and kernels are compared within a run only; expected one file" in line


def test_bad_input_is_one_line(saved, tmp_path):
    assert "expected no --operation and no --quick" in refused("bench", "kernels", "--from", saved, "--quick")
    assert "ends with .svg" in refused("bench", "kernels", "--from", saved, "--plot", tmp_path / "x.png")
    assert "no such file" in refused("bench", "kernels", "--from", tmp_path / "absent.json")
    saved.write_text(saved.read_text().replace('"KernelBench"', '"Plan"'))
    assert "expected 'KernelBench'" in refused("bench", "kernels", "--from", saved)
