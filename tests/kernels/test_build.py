"""The build: the same bits from two directories, and machine code as the checked-in table says. Needs nvcc, no GPU."""

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "pkgs" / "kernels"
TABLE = Path(__file__).parent / "sass_table.json"


def tool(name: str) -> str:
    """From CUDA_HOME, the PATH or Triton's wheel."""
    triton = importlib.util.find_spec("triton")
    places = [os.environ.get("CUDA_HOME", "") + "/bin"]
    if triton:
        places.append(str(Path(triton.origin).parent / "backends/nvidia/bin"))
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))
    if not found:
        pytest.skip(f"needs {name}")
    return found


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    tool("nvcc")
    built = []
    for name in ("one", "two/levels/deeper"):
        copy = tmp_path_factory.mktemp("build") / name
        shutil.copytree(KERNELS, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        subprocess.run([copy / "build.sh", copy / "out"], check=True, cwd="/", timeout=600)
        built.append(copy / "out" / "libappliance_kernels.so")
    return built


def test_two_directories_give_the_same_bits(libraries):
    first, second = (library.read_bytes() for library in libraries)
    assert first == second
    assert not [p for p in (str(KERNELS), str(libraries[0].parent.parent)) if p.encode() in first]


def test_machine_code_is_as_in_the_table(libraries):
    found = json.loads(
        subprocess.run(
            ["python3", KERNELS / "sass_table.py", libraries[0], tool("cuobjdump")],
            check=True, capture_output=True, text=True,
        ).stdout
    )  # fmt: skip
    assert found == json.loads(TABLE.read_text()), f"if the change is meant: sass_table.py LIBRARY > {TABLE.name}"


def test_table_keeps_its_promises():
    table = json.loads(TABLE.read_text())
    assert {key.split()[0] for key in table} == {"sm_90a", "sm_120a"}
    for name, row in table.items():
        assert row["stack_bytes"] == row["LDL"] == row["STL"] == 0, "spills"
        assert row["shared_bytes"] <= 99 * 1024
        if not name.endswith("indexer_topk"):  # compares and counts, no products
            assert row["HMMA"] + row["QMMA"] > 0 and row["LDGSTS"] > 0
