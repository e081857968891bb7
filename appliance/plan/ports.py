"""Ports of a plan: every listener gets its own, from one base, so that nothing is picked by a race."""

from dataclasses import dataclass

DEFAULT_BASE = 30000
SPAN = 40
"""A plan uses ports from its base to base + SPAN - 1."""


@dataclass(frozen=True)
class PortRange:
    """The ports of one plan: router and its metrics first, then three blocks of ten for the workers."""

    base: int = DEFAULT_BASE

    @property
    def router(self) -> int:
        return self.base

    @property
    def router_metrics(self) -> int:
        return self.base + 1

    def worker(self, index: int) -> int:
        return self.base + 10 + index

    def bootstrap(self, index: int) -> int:
        return self.base + 20 + index

    def nccl(self, index: int) -> int:
        return self.base + 30 + index
