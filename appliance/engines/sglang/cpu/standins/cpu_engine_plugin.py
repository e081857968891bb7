"""SGLang plugin of the CPU engine: makes NIXL's agent fit a small machine without a GPU.

1. SGLang registers every KV page with NIXL as VRAM (srt/disaggregation/nixl/conn.py); without a GPU that
   memory is DRAM. An agent resolves both words through one table: VRAM is pointed at DRAM in it.
2. An agent's progress thread polls without pause, which takes a whole core a worker. NIXL's own
   `pthrDelay` lets it pause; its Python API writes 0 there and offers no way to say otherwise.
3. SGLang's recorder of expert loads (srt/eplb/expert_distribution.py) asks the device's torch module whether a graph
   is being captured, and to empty its cache. torch.cpu has neither: nothing is captured, and there is no cache.
"""

import glob
import sys

PROGRESS_PAUSE_US = 100


def register() -> None:
    """Hook NIXL's agent in this process; end the process where an NVIDIA GPU is present.

    SystemExit, since SGLang only logs a plugin's Exception and would serve on without the hooks.
    """
    import torch

    if glob.glob("/dev/nvidia[0-9]*") or torch.cuda.is_available():
        sys.exit("the CPU engine's stand-ins must not be loaded on a machine that runs CUDA")
    from nixl._api import nixlBind
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    class PausingAgentConfig(nixlBind.nixlAgentConfig):
        def __setattr__(self, name, value):
            super().__setattr__(name, PROGRESS_PAUSE_US if name == "pthrDelay" else value)

    HookRegistry.register("nixl._api.nixlBind.nixlAgentConfig", PausingAgentConfig, HookType.REPLACE)
    HookRegistry.register("nixl._api.nixl_agent.__init__", call_vram_dram, HookType.AFTER)
    torch.cpu.is_current_stream_capturing = lambda: False
    torch.cpu.empty_cache = lambda: None


def call_vram_dram(_result, agent, *_args, **_kwargs) -> None:
    """AFTER hook of nixl_agent.__init__: whatever this agent is told of as VRAM is DRAM."""
    agent.nixl_mems["VRAM"] = agent.nixl_mems["DRAM"]
