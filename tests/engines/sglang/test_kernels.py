"""The plan's word on the kernels against the server's."""

import pytest

from appliance.engines.sglang import kernels
from appliance.engines.sglang.identity import mismatches


@pytest.fixture
def planned(make_plan):
    plan = make_plan("single")
    return lambda **env: (plan, plan.workers[0].model_copy(update={"env": env}))


@pytest.fixture(autouse=True)
def not_installed(monkeypatch):
    monkeypatch.setattr(kernels, "is_installed", lambda: False)


def kernels_lines(plan, worker, info):
    return [line for line in mismatches(plan, worker, info) if "APPLIANCE_KERNELS" in line]


def test_a_server_without_the_plugin_is_right_unless_it_is_planned(planned):
    assert kernels_lines(*planned(), {"internal_states": [{}]}) == []
    assert kernels_lines(*planned(APPLIANCE_KERNELS="off"), {"internal_states": [{}]}) == []
    [line] = kernels_lines(*planned(APPLIANCE_KERNELS="on"), {"internal_states": [{}]})
    assert "no such plugin; expected appliance-kernels" in line


@pytest.mark.parametrize("states", [None, [], "x", [3], {}])
def test_an_answer_without_states_is_no_proof(planned, states):
    assert kernels_lines(*planned(APPLIANCE_KERNELS="on"), {"internal_states": states})


def test_every_scheduler_must_report_them_active(planned):
    active, failed = {"state": "active", "reason": None}, {"state": "failed", "reason": "no kernel library"}
    states = [{"appliance_kernels": active}, {"appliance_kernels": failed}, {}]
    lines = kernels_lines(*planned(APPLIANCE_KERNELS="on"), {"internal_states": states})
    assert len(lines) == 2 and "failed (no kernel library)" in lines[0]


def test_an_installed_plugin_that_did_not_load_is_missed(planned, monkeypatch):
    monkeypatch.setattr(kernels, "is_installed", lambda: True)
    [line] = kernels_lines(*planned(), {"internal_states": [{}]})
    assert line.startswith("appliance-kernels is installed, but the server has no such plugin")
    assert kernels_lines(*planned(APPLIANCE_KERNELS="off"), {"internal_states": [{}]}) == []
