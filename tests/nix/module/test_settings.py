"""Settings become the words of a command line; what the module sets by itself is what the planner sets."""

import json

from appliance.documents import Plan
from appliance.engines.settings import words
from appliance.engines.sglang.command import FIELD_OF_FLAG
from appliance.engines.smg.settings import REPLICAS_ARGS, ROUTER_ARGS
from tests.helpers.nix_module import PROJECT, STANDIN, evaluate, example, module_of, settings_of, value_of


def plan_of(module: str) -> Plan:
    return Plan.parse(evaluate(module, "etc")["sglang-appliance/plan.json"], where="plan.json")


def words_of(settings: str) -> list[str]:
    return value_of(
        f"let lib = import {STANDIN}; in (import {PROJECT}/nix/lib/arguments.nix {{ inherit lib; }}).words {settings}"
    )


def test_values_become_words_sorted_by_name():
    assert words_of('{ page-size = 256; attention-backend = "dsv4"; mem-fraction-static = 0.85; }') == [
        *("--attention-backend", "dsv4"),
        *("--mem-fraction-static", "0.85"),
        *("--page-size", "256"),
    ]


def test_a_switch_is_given_or_not_and_null_is_never_given():
    assert words_of("{ enable-metrics = true; skip-server-warmup = false; page-size = null; }") == ["--enable-metrics"]


def test_a_toggle_that_is_off_is_said():
    assert words_of("{ enable-tf32-matmul = false; }") == ["--no-enable-tf32-matmul"]


def test_a_list_is_the_words_after_its_argument():
    assert words_of("{ cuda-graph-bs-decode = [ 1 2 4 ]; }") == ["--cuda-graph-bs-decode", "1", "2", "4"]


def test_text_is_one_word_whatever_is_in_it():
    assert words_of('{ chat-template = "a \\"b\\" \\$c\\n"; }') == ["--chat-template", 'a "b" $c\n']


def test_the_routers_defaults_are_the_planners():
    assert settings_of(plan_of(example("pd-8-gpus")).router.args) == settings_of(words(ROUTER_ARGS))
    assert settings_of(plan_of(example("replicas")).router.args) == settings_of(words(ROUTER_ARGS + REPLICAS_ARGS))


def test_what_a_worker_says_wins_over_what_the_module_sets():
    changes = 'workers.decode = { settings.enable-metrics = false; environment.SGLANG_HOST_IP = "::1"; };'
    decode = plan_of(example("pd-8-gpus", changes)).worker("decode")
    assert "--enable-metrics" not in decode.args
    assert decode.env["SGLANG_HOST_IP"] == "::1"


def test_nixl_is_told_its_backend_and_parameters():
    changes = 'kvTransfer = { nixlBackend = "UCX"; nixlParameters.num_workers = "2"; };'
    env = plan_of(example("pd-8-gpus", changes)).worker("prefill").env
    assert env["SGLANG_DISAGGREGATION_NIXL_BACKEND"] == "UCX"
    assert json.loads(env["SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS"]) == {"num_workers": "2"}


def test_every_argument_that_is_a_field_of_the_plan_has_an_option_of_its_own():
    for flag in FIELD_OF_FLAG:
        name = flag.removeprefix("--")
        refused = evaluate(example("pd-8-gpus", f"workers.decode.settings.{name} = null;"), "refused")
        assert refused == []
        refused = evaluate(example("pd-8-gpus", f'workers.decode.settings.{name} = "x";'), "refused")
        assert any("has an option of its own" in line or "not an argument" in line for line in refused), (flag, refused)


def test_a_plan_goes_through_the_module_and_comes_out_as_it_was(make_plan):
    for topology in ("pd", "replicas", "single"):
        plan = make_plan(topology)
        path = "/srv/models/demo"
        plan = plan.model_copy(update={"model": plan.model.model_copy(update={"path": path})})
        found = plan_of(module_of(plan))
        for worker in plan.workers:
            same = found.worker(worker.name)
            assert settings_of(same.args) == settings_of(worker.args)
            assert same.env.items() >= worker.env.items()
            assert same.ports() == worker.ports()
            assert (same.role, same.gpus, same.numa_node) == (worker.role, worker.gpus, worker.numa_node)
        assert found.topology == topology
        assert found.endpoint() == plan.endpoint()
