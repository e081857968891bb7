"""Which rank of decode receives from which rank of prefill.

All GPUs behind one switch of prefill write behind one switch of decode where that is possible: when two GPUs of a
switch partition write behind two roots at once, posted writes collapse on some PEX890xx boards, from 37 to 2.7 GB/s
(local-inference-lab/rtx6kpro, hardware/collapse-report.md; reported, not measured here).
"""

from appliance.plan.groups import Group


def matched(prefill: tuple[int, ...], decode: tuple[int, ...], sources: list[Group], sinks: list[Group]) -> list[int]:
    """The GPUs of `decode` in the order in which they are paired with those of `prefill` (equally many)."""
    free = [[gpu for gpu in switch if gpu in decode] for group in sinks for switch in group.switches]
    partner: dict[int, int] = {}
    parts = [[gpu for gpu in switch if gpu in prefill] for group in sources for switch in group.switches]
    for source in sorted(parts, key=len, reverse=True):
        roomy = [switch for switch in free if len(switch) >= len(source)]
        while source:
            switch = min(roomy, key=len) if roomy else max(free, key=len)
            roomy = []
            while source and switch:
                partner[source.pop(0)] = switch.pop(0)
    return [partner[gpu] for gpu in prefill]


def split_switches(pairs: list[tuple[int, int]], sources: list[Group], sinks: list[Group]) -> int:
    """How many switches of the source side write behind more than one switch of the other."""
    behind = {gpu: switch for group in sinks for switch in group.switches for gpu in switch}
    to = dict(pairs)
    reached = [
        {behind[to[gpu]] for gpu in switch if gpu in to} for group in sources for switch in group.switches if switch
    ]
    return sum(len(switches) > 1 for switches in reached)
