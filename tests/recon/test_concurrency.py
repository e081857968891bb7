import threading
import time

from appliance.recon.concurrency import Probe, side_by_side


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
