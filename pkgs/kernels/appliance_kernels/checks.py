"""Refusals of arguments: a ValueError that says which, what was expected and what came."""

from math import prod

import torch


def require(kernel: str, holds: bool, name: str, expected: str, got) -> None:
    if not holds:
        raise ValueError(f"{kernel}: {name}: expected {expected}, got {got}")


def require_tensor(kernel: str, name: str, t, dtypes: tuple, shape: tuple, device) -> None:
    """None in `shape` stands for any size. `device`: where it must be, or None: any CUDA device."""
    require(kernel, isinstance(t, torch.Tensor), name, "a tensor", type(t).__name__)
    require(kernel, t.dtype in dtypes, name, f"dtype {' or '.join(map(str, dtypes))}", t.dtype)
    fits = t.ndim == len(shape) and all(e is None or e == n for e, n in zip(shape, t.shape, strict=True))
    wanted = "[" + ", ".join("any" if e is None else str(e) for e in shape) + "]"
    require(kernel, fits, name, f"shape {wanted}", list(t.shape))
    if device is None:
        require(kernel, t.device.type == "cuda", name, "a CUDA device", t.device)
    else:
        require(kernel, t.device == device, name, f"device {device} (that of q)", t.device)


def require_dense_rows(kernel: str, name: str, t) -> None:
    """Every dimension but the first without gaps."""
    dense = [prod(t.shape[i + 1 :]) for i in range(t.ndim)]
    holds = all(t.shape[i] == 1 or t.stride(i) == dense[i] for i in range(1, t.ndim))
    require(kernel, holds, name, "rows without gaps", f"strides {t.stride()}")
