"""What the dispatch needs to know of an entry point of the engine."""

from collections.abc import Callable, Hashable
from typing import Protocol

import torch

APPLIANCE, STOCK = "appliance", "stock"
Kernel = Callable[..., object]


class Bucket(Hashable, Protocol):
    """Calls for which one choice holds. Its text is its name in the calibration file."""

    def calls_like(self, call: dict) -> list[dict]:
        """Calls to measure with, at the bucket's upper end, on the caches of `call`."""
        ...


class Entry(Protocol):
    NAMES: tuple[str, ...]
    """Of all kernels that may serve it."""
    PARAMETERS: tuple[str, ...]
    """Names of its positional parameters, in their order."""

    def device_of(self, call: dict) -> torch.device: ...

    def bucket_of(self, call: dict) -> Bucket | None:
        """None: a call that our kernel is not for."""
        ...

    def candidates(self, stock: Kernel) -> dict[str, Kernel]:
        """The kernels by name, each called with the entry point's arguments by name. Ours raises ValueError for what it
        does not take, before anything is launched. `stock` is the entry point itself, as the server is set up."""
        ...


def rounded_rows(rows: int) -> int:
    """Powers of two up to 8, multiples of 8 up to 64, powers of two: near the batch sizes that SGLang captures."""
    return power_of_two(rows) if rows <= 8 or rows > 64 else -(-rows // 8) * 8


def power_of_two(size: int) -> int:
    """The smallest that is not less than `size`; 0 for 0."""
    return 1 << (size - 1).bit_length() if size > 0 else 0
