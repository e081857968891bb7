"""Several hosts: the canary first, the others side by side, none begun after a failure."""

import threading

from appliance.deploy.fleet import everywhere
from appliance.errors import CheckFailed, ProbeIncomplete


def test_the_first_host_is_done_before_any_other_is_begun():
    done, together = [], threading.Barrier(2, timeout=10)

    def deploy(host):
        if host != "canary":
            assert done == ["canary"]
            together.wait()  # breaks unless the two others are under way at once
        else:
            done.append(host)
        return f"{host} serves"

    outcomes = everywhere(["canary", "b", "c"], deploy, at_once=2)
    assert [(outcome.host, outcome.state) for outcome in outcomes] == [("canary", "done"), ("b", "done"), ("c", "done")]


def test_after_an_ill_canary_no_other_host_is_begun():
    begun = []

    def deploy(host):
        begun.append(host)
        raise CheckFailed("golden prompts")

    outcomes = everywhere(["canary", "b", "c"], deploy, at_once=2)
    assert begun == ["canary"]
    assert [outcome.state for outcome in outcomes] == ["failed", "not begun", "not begun"]
    assert [outcome.exit_code for outcome in outcomes] == [1, 0, 0]


def test_a_later_failure_stops_those_that_wait():
    def deploy(host):
        if host == "b":
            raise ProbeIncomplete("connection lost")
        return ""

    outcomes = everywhere(["canary", "b", "c", "d"], deploy, at_once=1)
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "not begun", "not begun"]
