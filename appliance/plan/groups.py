"""How GPUs hang together: NUMA nodes, and within them PCIe switches. Never by the order of their indices alone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

from appliance.documents import Gpu, Link

SWITCH = {"PIX", "PXB"}
"""At most bridges between the two: no way through a host bridge."""
DISTANCE = ["PIX", "PXB", "PHB", "NODE", "SYS"]
"""Kinds of PCIe paths of the link matrix, near to far."""


@dataclass(frozen=True)
class Group:
    """GPUs that share a NUMA node (None: the machine does not tell), by switch."""

    node: int | None
    switches: tuple[tuple[int, ...], ...]

    @property
    def gpus(self) -> tuple[int, ...]:
        """All indices, switch by switch."""
        return tuple(index for switch in self.switches for index in switch)


class Links:
    """The link matrix, both ways."""

    def __init__(self, links: Iterable[Link]):
        self._kinds = {}
        for link in links:
            if link.a.startswith("GPU") and link.b.startswith("GPU"):
                pair = int(link.a[3:]), int(link.b[3:])
                self._kinds[pair] = self._kinds[pair[::-1]] = link.kind

    def kind(self, a: int, b: int) -> str | None:
        """Kind of the link between two GPUs; None where the matrix does not have the pair."""
        return self._kinds.get((a, b))

    def farthest(self, gpus: Iterable[int]) -> str | None:
        """The farthest PCIe path among `gpus`; None where all pairs have NVLink, or one is not known."""
        kinds = [self.kind(a, b) for a, b in combinations(gpus, 2)]
        paths = [kind for kind in kinds if kind in DISTANCE]
        return max(paths, key=DISTANCE.index) if paths and None not in kinds else None

    def all_nvlink(self, gpus: Iterable[int]) -> bool:
        """Whether every pair of `gpus` has NVLink between."""
        return all((self.kind(a, b) or "").startswith("NV") for a, b in combinations(gpus, 2))


def together(gpus: list[int], near: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """The classes that `near` makes among `gpus` (transitively), each sorted, in order of their first index."""
    left, classes = sorted(gpus), []
    while left:
        found = [left.pop(0)]
        for one in found:
            joining = [other for other in left if near(one, other)]
            found += joining
            left = [other for other in left if other not in joining]
        classes.append(tuple(sorted(found)))
    return classes


def groups_of(gpus: list[Gpu], links: Links) -> list[Group]:
    """The groups of `gpus` in order of their nodes.

    A GPU whose node is not known joins those that the matrix puts on its side (anything nearer than SYS); where no node
    is known at all, these sides are the groups.
    """
    nodes = {gpu.index: gpu.numa_node for gpu in gpus}
    indices = sorted(nodes)

    def same_side(a: int, b: int) -> bool:
        if nodes[a] is not None and nodes[b] is not None:
            return nodes[a] == nodes[b]
        kind = links.kind(a, b)
        return kind in DISTANCE and kind != "SYS"

    found = []
    sides = together(indices, same_side)
    if all(node is None for node in nodes.values()) and not any(links.kind(a, b) for a, b in combinations(indices, 2)):
        sides = [tuple(indices)]  # nothing at all is known: one group
    for side in sides:
        known = {nodes[index] for index in side} - {None}
        switches = together(list(side), lambda a, b: links.kind(a, b) in SWITCH)
        found.append(Group(node=next(iter(known)) if len(known) == 1 else None, switches=tuple(switches)))
    return sorted(found, key=lambda group: (group.node is None, group.node or 0, group.gpus))


def halves(groups: list[Group]) -> tuple[list[Group], list[Group]] | None:
    """Two sides with equally many GPUs, of whole groups, neighbours together; None where no cut is even."""
    total = sum(len(group.gpus) for group in groups)
    for cut in range(1, len(groups)):
        if 2 * sum(len(group.gpus) for group in groups[:cut]) == total:
            return groups[:cut], groups[cut:]
    return None


def take(groups: list[Group], count: int) -> tuple[int, ...]:
    """`count` GPUs of `groups`, whole switches where that is possible, the largest first; in order of their places."""
    switches = [switch for group in groups for switch in group.switches]
    chosen: set[int] = set()
    for switch in sorted(switches, key=len, reverse=True):
        if len(chosen) + len(switch) <= count:
            chosen |= set(switch)
    rest = [index for switch in switches for index in switch if index not in chosen]
    chosen |= set(rest[: count - len(chosen)])
    return tuple(index for switch in switches for index in switch if index in chosen)
