"""What the benchmark asks of an operation: its shapes, and for each shape what is run and what is right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

APPLIANCE = "appliance"


@dataclass(frozen=True)
class Case:
    """One shape, ready to run. `kernels`: functions of no arguments by name; each returns what `error` compares."""

    shape: dict[str, int | bool]
    bytes: int  # the fewest that must move
    blocks: int
    blocks_at_once: int
    kernels: dict[str, Callable[[], object]]
    error: Callable[[object], float]  # relative, against float64


class Operation(Protocol):
    name: str
    left_out: dict[str, str]  # kernels that cannot run here, and why

    def shapes(self, quick: bool) -> list[dict]: ...

    def case(self, shape: dict) -> Case: ...


def relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got.double() - want).norm() / want.norm())
