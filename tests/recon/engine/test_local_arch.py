import pytest

from appliance.recon.absent import Absent
from appliance.recon.engine import local_arch as module
from appliance.recon.engine.arch import Arch
from appliance.recon.engine.local_arch import local_arch


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Put an nvidia-smi on PATH that is this shell script."""

    def put(script: str) -> None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return put


def test_the_architecture_is_that_of_all_gpus(nvidia_smi):
    nvidia_smi("echo 12.0; echo 12.0")
    assert local_arch() == Arch(12, 0)


@pytest.mark.parametrize(
    "script, reason",
    [
        ("echo 12.0; echo 8.9", r"GPUs of several architectures \(sm_89, sm_120\): expected --arch"),
        ("echo 'NVIDIA-SMI has failed'; exit 9", "no GPU here tells its architecture: expected --arch"),
        ("exit 0", "no GPU here tells its architecture: expected --arch"),
        ("echo '[N/A]'", r"'\[N/A\]' is no GPU architecture; .*; expected --arch"),
        ("sleep 30", r"\(nvidia-smi not back within 0.3 s\): expected --arch"),
    ],
)
def test_where_the_gpus_do_not_tell_the_reason_is_told(nvidia_smi, monkeypatch, script, reason):
    monkeypatch.setattr(module, "LIMIT_S", 0.3 if "sleep" in script else 10)
    nvidia_smi(script)
    with pytest.raises(Absent, match=reason):
        local_arch()


def test_without_a_driver_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Absent, match="nvidia-smi is not installed"):
        local_arch()
