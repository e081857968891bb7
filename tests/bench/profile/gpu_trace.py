"""`python gpu_trace.py FOLDER` on a machine with a GPU and torch: a real trace of a CUDA-graphed toy, replayed.

Some of its kernels have fewer blocks than the GPU has SMs, and the second half is launched one by one from Python, so
that gaps, launches, copies and geometry of a real trace can be compared with what the reader makes of them.
"""

import sys
from pathlib import Path

import torch

STEPS, LAYERS, BATCH, WIDTH = 5, 8, 8, 2048


def main(folder: Path) -> None:
    """Write torch.trace.json.gz to `folder`."""
    weights = [torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5 for _ in range(LAYERS)]
    given = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
    host = torch.randn(BATCH, WIDTH, dtype=torch.bfloat16).pin_memory()

    def step() -> torch.Tensor:
        hidden = given
        for weight in weights:
            hidden = torch.softmax(torch.relu(hidden @ weight), dim=-1)
        return hidden

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(STEPS):
            with torch.profiler.record_function(f"step[DECODE bs={BATCH}]"):
                given.copy_(host, non_blocking=True)
                graph.replay()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(folder / "torch.trace.json.gz"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
