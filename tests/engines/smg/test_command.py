from appliance.engines.smg.command import command


def test_a_pair_is_routed_with_the_bootstrap_port_of_prefill(make_plan):
    plan = make_plan("pd")
    words = command(plan)
    prefill, decode = plan.worker("prefill"), plan.worker("decode")
    start = words.index("--pd-disaggregation")
    assert words[start : start + 6] == [
        "--pd-disaggregation",
        "--prefill",
        f"http://127.0.0.1:{prefill.port}",
        str(prefill.bootstrap_port),
        "--decode",
        f"http://127.0.0.1:{decode.port}",
    ]


def test_replicas_are_routed_by_cached_prefix(make_plan):
    plan = make_plan("replicas")
    words = command(plan)
    start = words.index("--worker-urls")
    assert words[start + 1 : start + 3] == [f"http://127.0.0.1:{worker.port}" for worker in plan.workers]
    assert words[words.index("--policy") + 1] == "cache_aware"


def test_metrics_are_for_this_host_only(make_plan):
    words = command(make_plan("pd"))
    assert words[words.index("--prometheus-host") + 1] == "127.0.0.1"


def test_the_router_may_listen_elsewhere_than_the_workers(make_plan):
    plan = make_plan("pd")
    outward = plan.model_copy(update={"router": plan.router.model_copy(update={"host": "192.0.2.7"})})
    words = command(outward)
    assert words[words.index("--host") + 1] == "192.0.2.7"
    assert words[words.index("--prometheus-host") + 1] == "127.0.0.1"
    assert words[words.index("--prefill") + 1] == f"http://127.0.0.1:{plan.worker('prefill').port}"
