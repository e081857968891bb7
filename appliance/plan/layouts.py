"""The ways to place a topology's workers on groups of GPUs, best first."""

from dataclasses import dataclass

from appliance.documents import ModelReport
from appliance.plan.groups import Group, halves, take
from appliance.plan.rank_map import matched
from appliance.plan.tensor_parallel import allowed


@dataclass(frozen=True)
class Place:
    """A worker's name, role and GPUs, in the order of its ranks, and the groups that these come from."""

    name: str
    role: str
    gpus: tuple[int, ...]
    groups: tuple[Group, ...]

    @property
    def nodes(self) -> list[int | None]:
        """NUMA nodes of its GPUs, each once."""
        mine = [group.node for group in self.groups if set(group.gpus) & set(self.gpus)]
        return list(dict.fromkeys(mine))


Layout = list[Place]
Side = list[Group]


def layouts(topology: str, groups: list[Group], model: ModelReport, shared: bool = False) -> list[Layout]:
    """Layouts of "pd", "replicas" or "single"; none where there are not enough GPUs. shared: pd may be on one GPU."""
    if topology == "single":
        size = allowed(model, sum(len(group.gpus) for group in groups))
        return [[place("single", "aggregated", groups, size)]]
    pairs = sorted(two_sides(groups), key=lambda sides: -rank_count(sides, model))
    if topology == "pd":
        if not pairs and shared:
            (gpu,) = groups[0].gpus
            return [[Place(role, role, (gpu,), tuple(groups)) for role in ("prefill", "decode")]]
        return [pd(*sides, rank_count(sides, model)) for sides in pairs]
    found = []
    if len(groups) > 2:
        size = allowed(model, min(len(group.gpus) for group in groups))
        found.append([place(f"replica-{n}", "aggregated", [group], size) for n, group in enumerate(groups)])
    for sides in pairs:
        size = rank_count(sides, model)
        found.append([place(f"replica-{n}", "aggregated", side, size) for n, side in enumerate(sides)])
    return found


def two_sides(groups: list[Group]) -> list[tuple[Side, Side]]:
    """Ways to make two sides: half of the groups each, the two largest groups, the two halves of one group."""
    found = []
    if len(groups) > 1:
        even = halves(groups)
        if even:
            found.append(even)
        first, second, *_ = sorted(groups, key=lambda group: -len(group.gpus))
        pair = sorted((first, second), key=groups.index)
        if not even or len(groups) > 2:
            found.append(([pair[0]], [pair[1]]))
    for group in groups:
        if len(group.gpus) > 1:
            found.append(split(group))
    return found


def split(group: Group) -> tuple[Side, Side]:
    """Two halves of a group, along its switches where they come out even."""
    first = set(take([group], len(group.gpus) // 2))
    sides = []
    for half in (first, set(group.gpus) - first):
        switches = [tuple(gpu for gpu in switch if gpu in half) for switch in group.switches]
        sides.append([Group(group.node, tuple(switch for switch in switches if switch))])
    return sides[0], sides[1]


def rank_count(sides: tuple[Side, Side], model: ModelReport) -> int:
    """The tensor-parallel size that both sides can have."""
    return allowed(model, min(sum(len(group.gpus) for group in side) for side in sides))


def place(name: str, role: str, side: Side, size: int) -> Place:
    """A worker on `size` GPUs of a side."""
    return Place(name, role, take(side, size), tuple(side))


def pd(sources: Side, sinks: Side, size: int) -> Layout:
    """Prefill on the one side, decode on the other, its ranks in the order that the switches ask for."""
    prefill = place("prefill", "prefill", sources, size)
    decode = take(sinks, size)
    return [prefill, Place("decode", "decode", tuple(matched(prefill.gpus, decode, sources, sinks)), tuple(sinks))]
