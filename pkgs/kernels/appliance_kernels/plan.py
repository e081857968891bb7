"""How a launch is spread over the GPU. From shapes alone: a captured launch serves any later lengths and indices."""

from dataclasses import dataclass

MAX_SPLITS = 32
# What merging several clusters costs (through memory, with a fence and a counter), in tiles that a block works through
# in that time. From measurements on an H200, see docs/records.
SPLIT_COST = 3


@dataclass(frozen=True)
class Device:
    """What the library says about the kernel of one head count on one device."""

    heads_per_block: int
    tokens_per_tile: int
    clusters: tuple[int, ...]  # how many clusters of 2 ** i blocks run at once

    @property
    def blocks(self) -> int:
        return self.clusters[0]


@dataclass(frozen=True)
class Plan:
    """Blocks that share the tokens of one row: `splits` clusters of `cluster` blocks each."""

    cluster: int
    splits: int


def tiles(width: int, extra_width: int, tokens_per_tile: int) -> int:
    """A tile never spans both caches."""
    return -(-width // tokens_per_tile) + -(-extra_width // tokens_per_tile)


def plan(rows: int, tile_count: int, device: Device) -> Plan:
    """For `rows` pairs of a batch row and a group of heads that fits a block: the plan whose busiest block has the
    least to do, among those whose blocks all run at once."""

    def cost(choice: Plan):
        rounds = -(-tile_count // (choice.cluster * choice.splits))
        return rounds + (SPLIT_COST if choice.splits > 1 else 0), choice.splits, -choice.cluster

    choices = [
        Plan(2**i, splits)
        for i, at_once in enumerate(device.clusters)
        for splits in range(1, min(at_once // rows, MAX_SPLITS) + 1)
        if 2**i * splits < 2 * tile_count
    ]
    return min(choices, key=cost, default=Plan(1, 1))
