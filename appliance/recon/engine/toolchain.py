"""The tools that compile kernels at run time: which of them are here, and for which architectures."""

import os
import re
import shutil
from pathlib import Path

from appliance.documents import Tool
from appliance.recon.children import run

RELEASE = re.compile(r"release (\d+\.\d+)")
VERSION = re.compile(r"\d+(?:\.\d+)+")
LIMIT_S = 15.0


def toolchain() -> list[Tool]:
    """nvcc, ninja and the C++ compiler as run-time compilation finds them; absent ones have a reason."""
    return [nvcc(), ninja(), compiler()]


def nvcc() -> Tool:
    """nvcc from CUDA_HOME or CUDA_PATH, then PATH, then /usr/local/cuda: the order of tvm-ffi and FlashInfer."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    path = str(Path(home, "bin", "nvcc")) if home else shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(path, os.X_OK):
        return Tool(name="nvcc", path=None, version=None, reason=f"not executable: {path}")
    try:
        release = RELEASE.search(run([path, "--version"], LIMIT_S)[1])
        listing = run([path, "--list-gpu-arch"], LIMIT_S)[1].split()
    except (OSError, TimeoutError) as error:
        return Tool(name="nvcc", path=path, version=None, reason=str(error))
    architectures = [name.replace("compute_", "sm_") for name in listing if name.startswith("compute_")]
    reason = None if release else "its --version names no release"
    return Tool(
        name="nvcc", path=path, version=release[1] if release else None, architectures=architectures, reason=reason
    )


def ninja() -> Tool:
    """ninja on PATH."""
    return versioned("ninja", [shutil.which("ninja")])


def compiler() -> Tool:
    """The C++ compiler: $CXX, then c++, g++, clang++ on PATH."""
    names = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    return versioned("c++", [shutil.which(name) for name in names if name])


def versioned(name: str, paths: list[str | None]) -> Tool:
    """The first of `paths` that is there, with the version that it tells."""
    path = next((path for path in paths if path), None)
    if path is None:
        return Tool(name=name, path=None, version=None, reason="not on PATH")
    try:
        version = VERSION.search(run([path, "--version"], LIMIT_S)[1])
    except (OSError, TimeoutError) as error:
        return Tool(name=name, path=path, version=None, reason=str(error))
    return Tool(name=name, path=path, version=version[0] if version else None)
