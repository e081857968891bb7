from hypothesis import given
from hypothesis import strategies as st

from appliance.plan.groups import Group
from appliance.plan.rank_map import matched, split_switches


def pairs(sources: Group, sinks: Group) -> list[tuple[int, int]]:
    return list(zip(sources.gpus, matched(sources.gpus, sinks.gpus, [sources], [sinks]), strict=True))


def test_the_usual_machine():
    sources, sinks = Group(0, ((0, 1), (2, 3))), Group(1, ((4, 5), (6, 7)))
    assert pairs(sources, sinks) == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_a_switch_writes_behind_one_switch_whatever_their_order():
    sources, sinks = Group(0, ((0,), (1, 2, 3))), Group(1, ((4, 5, 6), (7,)))
    assert dict(pairs(sources, sinks)) == {0: 7, 1: 4, 2: 5, 3: 6}
    assert split_switches(pairs(sources, sinks), [sources], [sinks]) == 0


def test_two_small_switches_share_a_large_one():
    sources, sinks = Group(0, ((0, 1), (2, 3))), Group(1, ((4, 5, 6, 7),))
    assert split_switches(pairs(sources, sinks), [sources], [sinks]) == 0


def test_where_no_order_avoids_it_that_is_counted():
    sources, sinks = Group(0, ((0, 1, 2, 3),)), Group(1, ((4, 5), (6, 7)))
    assert split_switches(pairs(sources, sinks), [sources], [sinks]) == 1


def cut(gpus: list[int], cuts: list[int]) -> Group:
    switches, rest = [], list(gpus)
    for size in cuts:
        switches.append(tuple(rest[:size]))
        rest = rest[size:]
    return Group(0, tuple(switch for switch in [*switches, tuple(rest)] if switch))


@given(st.integers(1, 8), st.lists(st.integers(1, 4), max_size=4), st.lists(st.integers(1, 4), max_size=4))
def test_every_rank_has_one_partner(count, first, second):
    found = pairs(cut(list(range(count)), first), cut(list(range(count, 2 * count)), second))
    assert sorted(a for a, _ in found) == list(range(count))
    assert sorted(b for _, b in found) == list(range(count, 2 * count))
