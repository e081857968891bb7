"""A run as the JSON document that `appliance bench kernels` reads (KernelBench of its documents)."""

import datetime
import platform
from pathlib import Path

import torch

from ..engine.choices import sha256
from .contenders import driver_version, package_version
from .timing import Stopwatch

PACKAGES = ("torch", "triton", "sglang", "sgl-flash-mla", "flashinfer-python", "sgl-deep-gemm", "tilelang")
METHOD = (
    "One process. CUDA graph replay between two events, L2 flushed before each replay; microseconds. "
    "A kernel that cannot be captured is timed as it is called, and says so. Errors are relative, in the 2-norm, "
    "against float64."
)


def opening(command: str, library: Path, stopwatch: Stopwatch) -> dict:
    """The document without its cases."""
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "kind": "KernelBench",
        "schema_version": 1,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "gpu": {
            "name": device.name,
            "compute_capability": f"{device.major}.{device.minor}",
            "multiprocessors": device.multi_processor_count,
            "driver": driver_version(),
            "copy_bytes_per_s": round(stopwatch.copy_bandwidth()),
            "empty_graph_us": stopwatch.empty_graph().as_dict(),
        },
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "packages": {name: package_version(name) for name in PACKAGES},
        "library_sha256": sha256(library),
        "repetitions": stopwatch.repetitions,
        "method": METHOD,
        "left_out": {},
        "cases": [],
    }
