"""The one placeholder that both stand-in packages hand out: it imports, and raises when called.

Labelled stand-in: SGLang 0.5.23 imports names from `torchvision` and from a CPU build of `sgl_kernel`
at start-up, and no index offers wheels of either that load beside a CPU build of torch. A text model on
the `torch_native` attention backend never calls them. On a machine that runs CUDA they refuse to be imported.
"""

import glob

if glob.glob("/dev/nvidia[0-9]*"):
    raise ImportError("the CPU engine's stand-ins must not be loaded on a machine that runs CUDA (/dev/nvidia*)")


def placeholder(module: str, name: str):
    """Return a callable named `module.name` that raises NotImplementedError when called."""
    if name.startswith("__"):  # keep Python's own protocol look-ups (e.g. __wrapped__) honest
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def unavailable(*_args, **_kwargs):
        raise NotImplementedError(
            f"{module}.{name} is a stand-in of the CPU engine and has no implementation; "
            "this model needs an operation that only the GPU engine has"
        )

    unavailable.__name__ = unavailable.__qualname__ = name
    return unavailable
