from hypothesis import given
from hypothesis import strategies as st

from appliance.bench.report.chart import ticks


@given(st.floats(1e-6, 1e9))
def test_ticks_are_few_begin_at_zero_and_reach_what_they_must(most):
    found = ticks(most)
    assert found[0] == 0 and found[-1] >= most * 0.999
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))


def test_nothing_to_show_still_has_an_axis():
    assert ticks(0) == [0.0, 1.0]
