import threading
import time
from functools import partial

from appliance.recon.absent import Absent
from appliance.recon.concurrency import Once, Probe, side_by_side, some_at_once


def slow(seconds: float, value: object = None):
    def probe():
        time.sleep(seconds)
        return value

    return probe


def test_probes_run_side_by_side_and_take_as_long_as_the_slowest():
    probes = {name: Probe(slow(0.3 + 0.1 * n, name), 5) for n, name in enumerate("abcde")}
    start = time.monotonic()
    outcomes = side_by_side(probes)
    assert time.monotonic() - start <= 1.15 * 0.7
    assert {name: outcome.value for name, outcome in outcomes.items()} == {name: name for name in "abcde"}
    assert list(outcomes) == list(probes)


def test_each_probe_has_its_own_limit_and_the_rest_stands():
    start = time.monotonic()
    outcomes = side_by_side(
        {"hangs": Probe(slow(30), 0.2), "late": Probe(slow(30), 0.4), "good": Probe(slow(0.3, 1), 5)}
    )
    assert time.monotonic() - start < 1
    assert outcomes["hangs"].problem == "not back within 0.2 s"
    assert outcomes["late"].problem == "not back within 0.4 s"
    assert (outcomes["good"].value, outcomes["good"].problem) == (1, None)


def test_a_probe_that_fails_is_told_in_words():
    outcome = side_by_side({"x": Probe(lambda: {}["gone"], 1)})["x"]
    assert outcome.problem == "KeyError: 'gone'"


def test_each_end_is_told_once_in_the_callers_thread():
    told = []
    side_by_side(
        {"a": Probe(slow(0.1), 1), "b": Probe(slow(0), 1), "c": Probe(slow(9), 0.3)},
        lambda name, outcome: told.append((name, threading.current_thread())),
    )
    assert told == [(name, threading.main_thread()) for name in "bac"]


def test_no_probes_are_no_outcomes():
    assert side_by_side({}) == {}


def test_a_call_that_several_probes_need_is_made_once_for_all():
    made = []

    def slowly():
        made.append(time.sleep(0.2))
        return "value"

    once = Once(slowly)
    outcomes = side_by_side({name: Probe(once, 5) for name in "abc"})
    assert [outcome.value for outcome in outcomes.values()] == ["value"] * 3
    assert (once(), len(made)) == ("value", 1)


def test_a_call_that_fails_fails_for_all_that_need_it():
    def fails():
        raise Absent(f"no fact, at try {next(tries)}")

    tries = iter(range(1, 9))
    once = Once(fails)
    outcomes = side_by_side({name: Probe(once, 5) for name in "abc"})
    assert {outcome.problem for outcome in outcomes.values()} == {"no fact, at try 1"}


def test_of_many_calls_some_are_made_at_once_and_each_has_its_outcome():
    running, most = [], []

    def call(n):
        running.append(n)
        most.append(len(running))
        time.sleep(0.05)
        running.remove(n)
        return 1 // (n - 3)

    futures = some_at_once([partial(call, n) for n in range(8)], 3)
    assert [future.exception() is None for future in futures] == [n != 3 for n in range(8)]
    assert [future.result() for future in futures[4:]] == [1, 0, 0, 0]
    assert max(most) == 3
    assert some_at_once([], 3) == []


def test_calls_that_are_cancelled_before_they_begin_are_never_made():
    made, begun, go = [], threading.Event(), threading.Event()
    futures = some_at_once([lambda: begun.set() or go.wait(), *(partial(made.append, n) for n in range(3))], 1)
    begun.wait()
    assert [future.cancel() for future in futures] == [False, True, True, True]
    go.set()
    assert futures[0].result(5)
    assert made == []
