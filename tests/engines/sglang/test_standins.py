"""The CPU engine's stand-ins and plugin, with real NIXL agents, in processes of their own."""

import os
import subprocess
import sys

from appliance.engines.sglang import cpu


def run(code: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | cpu.environment() | env,
        capture_output=True,
        text=True,
        check=False,
    )


AGENTS = """
import time
from sglang.srt.plugins import load_plugins
load_plugins()
from nixl._api import nixl_agent, nixl_agent_config
agent = nixl_agent("a", nixl_agent_config(backends=[]))
agent.create_backend("UCX", {})
start = time.process_time()
time.sleep(1)
print("idle share", time.process_time() - start)
import numpy
memory = numpy.zeros(4096, numpy.uint8)
agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "VRAM")
print("registered")
"""


def test_host_memory_is_registered_as_vram_and_the_agent_does_not_spin():
    done = run(AGENTS)
    assert "registered" in done.stdout, done.stderr
    assert float(done.stdout.split("idle share ")[1].split()[0]) < 0.5


def test_without_the_plugin_host_memory_is_no_vram():
    done = run(AGENTS, SGLANG_PLUGINS="none")
    assert "registered" not in done.stdout


def test_the_recorder_of_experts_is_answered_that_nothing_is_captured():
    done = run(
        "from sglang.srt.plugins import load_plugins\nload_plugins()\nimport torch\n"
        "module = torch.get_device_module()\nprint(module.is_current_stream_capturing(), module.empty_cache())"
    )
    assert "False None" in done.stdout, done.stderr


def test_a_machine_that_runs_cuda_is_refused_by_ending_the_process():
    done = run("import torch; torch.cuda.is_available = lambda: True\n" + AGENTS)
    assert done.returncode == 1
    assert "must not be loaded on a machine that runs CUDA" in done.stderr


def test_beside_a_gpu_the_stand_ins_cannot_be_imported():
    for module in ("sgl_kernel", "torchvision"):
        done = run(f"import glob; glob.glob = lambda pattern: ['/dev/nvidia0']\nimport {module}")
        assert "ImportError: the CPU engine's stand-ins must not be loaded" in done.stderr


def test_a_stand_in_raises_when_called():
    done = run("import sgl_kernel; sgl_kernel.rmsnorm(1)")
    assert "NotImplementedError: sgl_kernel.rmsnorm is a stand-in of the CPU engine" in done.stderr


def test_the_stand_ins_are_not_found_without_the_engines_path():
    done = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(m.entry_points(group='sglang.srt.plugins'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "appliance-cpu-engine" not in done.stdout
