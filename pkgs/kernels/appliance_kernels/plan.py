"""How a launch is spread over the GPU. From shapes alone: a captured launch serves any later lengths and indices."""

from dataclasses import dataclass

MAX_SPLITS = 32
# Below this many tiles a block, one more level of splitting costs more than it saves (a second merge, through memory).
MIN_TILES_PER_BLOCK_TO_SPLIT = 4


@dataclass(frozen=True)
class Device:
    """What the library says about a kernel on a device."""

    multiprocessors: int
    tokens_per_tile: int
    max_cluster: int
    blocks_per_multiprocessor: int

    @property
    def blocks(self) -> int:
        return self.multiprocessors * self.blocks_per_multiprocessor


@dataclass(frozen=True)
class Plan:
    """Blocks that share one batch row: `splits` clusters of `cluster` blocks each."""

    cluster: int
    splits: int


def tiles(width: int, extra_width: int, tokens_per_tile: int) -> int:
    """A tile never spans both caches."""
    return -(-width // tokens_per_tile) + -(-extra_width // tokens_per_tile)


def plan(batch: int, tile_count: int, device: Device) -> Plan:
    """As many blocks as run at once, but no block without a tile."""
    share = max(1, device.blocks // batch)  # blocks for one row
    cluster = 1
    while cluster * 2 <= min(device.max_cluster, share, tile_count):
        cluster *= 2
    useful = tile_count // (cluster * MIN_TILES_PER_BLOCK_TO_SPLIT)
    return Plan(cluster, max(1, min(share // cluster, useful, MAX_SPLITS)))
