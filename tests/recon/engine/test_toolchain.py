from pathlib import Path

import pytest

from appliance.recon.engine import toolchain as module
from appliance.recon.engine.toolchain import compiler, nvcc, toolchain

NVCC = """#!/bin/sh
case $1 in
--version) echo "Cuda compilation tools, release 12.8, V12.8.93";;
--list-gpu-arch) echo compute_90; echo compute_120;;
esac
"""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("CUDA_HOME", "CUDA_PATH", "CXX"):
        monkeypatch.delenv(name, raising=False)


def test_nvcc_comes_from_cuda_home_first(tmp_path, monkeypatch):
    path = executable(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    found = nvcc()
    assert (found.path, found.version, found.architectures) == (str(path), "12.8", ["sm_90", "sm_120"])


def test_a_cuda_home_without_nvcc_is_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert nvcc().reason == f"not executable: {tmp_path}/bin/nvcc"


def test_tools_that_hang_or_tell_nothing_have_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LIMIT_S", 0.3)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    executable(tmp_path / "cuda" / "bin" / "nvcc", "#!/bin/sh\nsleep 60\n")
    assert nvcc().reason == "nvcc not back within 0.3 s"
    executable(tmp_path / "cuda" / "bin" / "nvcc", "#!/bin/sh\n")
    assert nvcc().reason == "its --version names no release"


def test_the_compiler_is_the_one_that_cxx_names(tmp_path, monkeypatch):
    path = executable(tmp_path / "mycxx", "#!/bin/sh\necho mycxx 9.8.7\n")
    monkeypatch.setenv("CXX", str(path))
    assert (compiler().path, compiler().version) == (str(path), "9.8.7")


def test_tools_that_are_not_there_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert [(tool.name, tool.path) for tool in toolchain()] == [("nvcc", None), ("ninja", None), ("c++", None)]
    assert all(tool.reason for tool in toolchain())
