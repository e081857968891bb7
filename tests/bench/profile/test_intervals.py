from hypothesis import given
from hypothesis import strategies as st

from appliance.bench.profile.intervals import Intervals, idle, own_times, span

TIMES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=12)


def made(times) -> Intervals:
    found = Intervals()
    for key, (start, duration) in enumerate(times):
        found.add(float(start), float(duration), key)
    return found


@given(TIMES)
def test_busy_and_idle_make_the_whole(times):
    covered = {tick for start, duration in times for tick in range(start, start + duration)}
    intervals = made(times)
    assert span(intervals) == len(covered) + sum(end - begin for begin, end, _ in idle(intervals))


@given(TIMES)
def test_own_times_of_one_thread_never_count_a_moment_twice(times):
    covered = {tick for start, duration in times for tick in range(start, start + duration)}
    found = list(own_times(made(times)))
    assert sorted(key for key, _ in found) == list(range(len(times)))
    assert all(own >= 0 for _, own in found) and sum(own for _, own in found) <= len(covered)


def test_the_time_of_calls_within_is_taken_off():
    assert dict(own_times(made([(0, 100), (10, 30), (15, 10), (50, 20)]))) == {0: 50.0, 1: 20.0, 2: 10.0, 3: 20.0}
