from hypothesis import given
from hypothesis import strategies as st

from appliance.documents import MachineReport
from appliance.plan.groups import Group, Links, groups_of, halves, take
from tests.helpers.gpu_machines import machine

KINDS = ["NV18", "PIX", "PXB", "PHB", "NODE", "SYS"]


def groups(report: MachineReport) -> list[Group]:
    return groups_of(report.gpus, Links(report.links))


def uniform(count: int, kind: str) -> list[list[str]]:
    return [["X" if a == b else kind for b in range(count)] for a in range(count)]


def test_nodes_are_groups_and_pairs_behind_a_switch_stay_together():
    assert groups(machine([0] * 4 + [1] * 4)) == [Group(0, ((0, 1), (2, 3))), Group(1, ((4, 5), (6, 7)))]


def test_nodes_decide_and_not_the_order_of_indices():
    kinds = [["X" if a == b else "NODE" if (a - b) % 2 == 0 else "SYS" for b in range(4)] for a in range(4)]
    assert [(group.node, group.gpus) for group in groups(machine([1, 0, 1, 0], kinds))] == [(0, (1, 3)), (1, (0, 2))]


def test_without_nodes_the_sides_of_the_link_matrix_are_the_groups():
    assert [group.gpus for group in groups(machine([None] * 8))] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_without_nodes_and_links_all_are_one_group():
    bare = machine([None] * 4).model_copy(update={"links": []})
    assert [group.gpus for group in groups(bare)] == [(0, 1, 2, 3)]


def test_nvlink_says_nothing_about_sides_so_that_gpus_without_a_node_are_alone():
    assert [group.gpus for group in groups(machine([None] * 2, uniform(2, "NV18")))] == [(0,), (1,)]


def test_a_gpu_without_a_node_joins_those_on_its_side():
    assert [(group.node, group.gpus) for group in groups(machine([0, None, 1, 1]))] == [(0, (0, 1)), (1, (2, 3))]


def test_two_even_sides_of_whole_groups():
    eight_nodes = groups(machine([3, 3, 1, 1, 7, 7, 5, 5]))
    first, second = halves(eight_nodes)
    assert [group.node for group in first] == [1, 3] and [group.node for group in second] == [5, 7]
    assert halves(groups(machine([0, 1, 1, 1]))) is None


def test_whole_switches_are_taken_first():
    group = Group(0, ((0,), (1, 2), (3, 4)))
    assert take([group], 4) == (1, 2, 3, 4)
    assert take([group], 3) == (0, 1, 2)
    assert take([group], 5) == (0, 1, 2, 3, 4)


@st.composite
def machines(draw) -> MachineReport:
    count = draw(st.integers(1, 9))
    nodes = draw(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=count, max_size=count))
    kinds = uniform(count, "SYS")
    for a in range(count):
        for b in range(a):
            kinds[a][b] = kinds[b][a] = draw(st.sampled_from(KINDS))
    return machine(nodes, kinds)


@given(machines())
def test_each_gpu_is_in_one_group_and_behind_one_switch(report):
    found = [gpu for group in groups(report) for gpu in group.gpus]
    assert sorted(found) == [gpu.index for gpu in report.gpus]


@given(machines(), st.integers(1, 9))
def test_taking_gives_as_many_as_are_asked_for(report, count):
    all_groups = groups(report)
    taken = take(all_groups, min(count, len(report.gpus)))
    assert len(set(taken)) == len(taken) == min(count, len(report.gpus))
