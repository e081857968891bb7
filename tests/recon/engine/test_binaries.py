import pytest

from appliance.recon.engine import binaries as module
from appliance.recon.engine.arch import Arch
from appliance.recon.engine.binaries import NoTool, binaries, judged

CUOBJDUMP = """#!/bin/sh
echo "$@" >> {calls}
case $2 in
*broken*) echo 'cuobjdump fatal   : bad file' >&2; exit 1;;
*plain*) echo 'does not contain device code' >&2; exit 255;;
esac
[ $1 = --list-elf ] && echo 'ELF file    1: lib.1.sm_90a.cubin' && echo 'ELF file    2: lib.2.sm_120a.cubin'
[ $1 = --list-ptx ] && echo 'No PTX file found' >&2 && exit 255
exit 0
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed distribution `gpu-things` with three libraries, and a cuobjdump that counts its calls."""
    site = tmp_path / "site"
    (site / "gpu_things-1.dist-info").mkdir(parents=True)
    names = ["gpu_things/ops.abi3.so", "gpu_things/plain.so", "gpu_things/broken.so.1", "gpu_things/__init__.py"]
    (site / "gpu_things").mkdir()
    for name in names:
        (site / name).write_text(name)
    (site / "gpu_things-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu-things\nVersion: 1\n")
    (site / "gpu_things-1.dist-info" / "RECORD").write_text("".join(f"{name},,\n" for name in [*names, "gone.so"]))
    tool = tmp_path / "cuobjdump"
    tool.write_text(CUOBJDUMP.format(calls=tmp_path / "calls"))
    tool.chmod(0o755)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(module, "find_cuobjdump", lambda: tool)
    monkeypatch.setenv("APPLIANCE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_libraries_with_gpu_code_are_told_with_what_serves_the_architecture(package):
    found = [judged(binary, Arch(12, 0)) for binary in binaries(["gpu-things", "not-installed"])]
    broken, ops = sorted(found, key=lambda found: found.file)
    assert (ops.file, ops.machine_code, ops.ptx) == ("gpu_things/ops.abi3.so", ["sm_90a", "sm_120a"], [])
    assert (ops.serves, ops.by) == (True, "sm_120a")
    assert (broken.serves, broken.by) == (None, "unread: cuobjdump fatal   : bad file")


def test_code_for_others_does_not_serve(package):
    ops = next(found for found in binaries(["gpu-things"]) if "ops" in found.file)
    assert (ops.serves, ops.by) == (None, None)
    ops = judged(ops, Arch(10, 0))
    assert (ops.serves, ops.by) == (False, "neither machine code nor PTX for sm_100")


def test_a_file_is_looked_into_once_and_again_when_it_changed(package):
    def calls() -> int:
        return sum("ops" in line for line in (package / "calls").read_text().splitlines())

    first = binaries(["gpu-things"])
    assert calls() == 2
    assert binaries(["gpu-things"]) == first
    assert calls() == 2
    (package / "site" / "gpu_things" / "ops.abi3.so").write_text("another")
    binaries(["gpu-things"])
    assert calls() == 4


def test_without_the_tool_nothing_is_said(monkeypatch):
    monkeypatch.setattr(module, "find_cuobjdump", lambda: None)
    with pytest.raises(NoTool, match="no cuobjdump: expected it in the nvidia-cuda-cuobjdump wheel"):
        binaries([])
