import threading
import time

import pytest

from appliance.recon.machine.concurrency import side_by_side


def slow(seconds: float, value: object = "value"):
    def probe():
        time.sleep(seconds)
        return value

    return probe


def test_slow_probes_take_no_longer_than_the_slowest():
    probes = {f"slow {number}": slow(0.2 + 0.1 * number) for number in range(9)}
    start = time.monotonic()
    outcomes = side_by_side(probes, limit_s=10)
    assert time.monotonic() - start < 1.15 * 1.0
    assert all(outcome.value == "value" for outcome in outcomes.values())


def test_a_hung_probe_is_left_behind_at_the_limit_and_the_others_stand():
    forever = threading.Event()
    start = time.monotonic()
    outcomes = side_by_side({"hung": forever.wait, "fast": slow(0)}, limit_s=0.3)
    assert time.monotonic() - start < 0.6
    assert outcomes["hung"].problem == "not back within 0.3 s"
    assert outcomes["fast"].value == "value"
    forever.set()


def test_a_probe_that_raises_says_why():
    def broken():
        raise PermissionError("no")

    assert side_by_side({"broken": broken}, limit_s=5)["broken"].problem == "PermissionError: no"


def test_the_end_of_each_probe_is_told_in_the_callers_thread():
    told = []
    side_by_side(
        {"b": slow(0.1), "a": slow(0)}, 5, lambda name, outcome: told.append((name, threading.current_thread()))
    )
    assert told == [("a", threading.main_thread()), ("b", threading.main_thread())]


def test_outcomes_keep_the_order_of_the_probes():
    assert list(side_by_side({"b": slow(0.05), "a": slow(0)}, 5)) == ["b", "a"]


@pytest.mark.parametrize("count", [0, 1])
def test_few_probes(count):
    assert len(side_by_side({str(n): slow(0) for n in range(count)}, 5)) == count
