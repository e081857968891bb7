import pytest

from appliance.errors import InputError
from appliance.launch.worker import exec_router, exec_worker


def test_a_worker_that_the_plan_does_not_have(make_plan):
    with pytest.raises(InputError, match="the plan has no worker 'prefil'; expected one of prefill, decode"):
        exec_worker(make_plan("pd"), "prefil")


def test_a_router_that_the_plan_does_not_have(make_plan):
    with pytest.raises(InputError, match="the plan has no router"):
        exec_router(make_plan("single"))


def test_another_version_of_the_engine_than_the_plan_was_made_for(make_plan):
    plan = make_plan("pd")
    other = plan.model_copy(update={"engine": plan.engine.model_copy(update={"version": "0.5.17"})})
    with pytest.raises(InputError, match=r"SGLang 0\.5\.23 is installed; the plan expects 0\.5\.17"):
        exec_worker(other, "decode")


def test_no_engine_at_all(make_plan, monkeypatch):
    monkeypatch.setattr("appliance.engines.sglang.release.installed", lambda package: None)
    with pytest.raises(InputError, match="SGLang is not installed in this environment; the plan expects sglang 0.5.23"):
        exec_worker(make_plan("pd"), "decode")
