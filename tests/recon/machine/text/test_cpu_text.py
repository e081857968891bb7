import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import cpu_list
from appliance.recon.machine import affinity
from appliance.recon.machine.text import cpu_text


@pytest.mark.parametrize(
    "shown, whole",
    [
        ("64-127,192-238", "64-127,192-238,240-255"),
        ("0,2,4,6,8,10", "0,2,4,6,8,10,12,14"),
    ],
)
def test_a_cut_list_gives_way_to_the_nodes_own(shown, whole):
    found = affinity.best(shown, 1, {1: whole})
    assert found == {"cpu_affinity": whole, "cpu_affinity_cut": False, "cpu_affinity_shown": shown}


def test_a_cpuset_is_not_taken_for_a_cut_list():
    assert affinity.best("2,66", 0, {0: "0,2,4,64,66"}) == {"cpu_affinity": "2,66", "cpu_affinity_cut": False}
    assert affinity.best("0,2", 0, {0: "0,2,4,6"}) == {"cpu_affinity": "0,2", "cpu_affinity_cut": False}
    assert affinity.best("57-63,161-166", 1, {1: "52-103,156-207"})["cpu_affinity"] == "57-63,161-166"


@pytest.mark.parametrize(
    "shown, cut", [("0-31", False), ("0,2,4,6,8,10", True), ("0-63,128-191", None), ("112-127,240-255", None)]
)
def test_without_another_source_it_is_said_what_can_be_said(shown, cut):
    assert affinity.best(shown, 0, {}) == {"cpu_affinity": shown, "cpu_affinity_cut": cut}


def test_lists_that_fit_together_are_whole():
    assert affinity.fit_together({"0-63,128-191", "64-127,192-255"})
    assert not affinity.fit_together({"0-63,128-191", "64-127,192-238"})
    assert not affinity.fit_together({"0-15,64-79", "32-47,96-111"})
    assert not affinity.fit_together(set())


@given(st.sets(st.integers(0, 2000), max_size=50))
def test_lists_from_ids_are_the_kernels(ids):
    text = cpu_text.from_ids(list(ids))
    assert cpu_list.parse(text) == ids
    assert not ids or cpu_text.ranges(text)


@pytest.mark.parametrize("text", ["", "x", "5-3", "0-", "1,,2", "0-9999999", None, "0 1"])
def test_what_is_no_list(text):
    assert cpu_text.ranges(text) is None
