from appliance.launch.environment import router_environment, worker_environment

PROXIES = {"http_proxy": "http://proxy:3128", "HTTPS_PROXY": "http://proxy:3128", "ALL_PROXY": "socks5://proxy"}


def worker_env(plan, inherited=None, **changes):
    return worker_environment(plan, plan.workers[0].model_copy(update=changes), inherited or {})


def test_proxies_are_gone_for_worker_and_router(make_plan):
    plan = make_plan("pd")
    for env in (worker_env(plan, PROXIES), router_environment(plan, PROXIES)):
        assert not {"http_proxy", "HTTPS_PROXY", "ALL_PROXY"} & env.keys()
        assert env["no_proxy"] == env["NO_PROXY"] == "localhost,127.0.0.1,::1"


def test_gpus_are_named_in_bus_order(make_plan):
    plan = make_plan("pd", engine=make_plan("pd").engine.model_copy(update={"device": "cuda"}))
    env = worker_env(plan, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "7"}, gpus=[4, 5])
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_a_gpu_worker_sees_no_stand_in(make_plan):
    plan = make_plan("pd", engine=make_plan("pd").engine.model_copy(update={"device": "cuda"}))
    env = worker_env(plan)
    assert "SGLANG_USE_CPU_ENGINE" not in env
    assert "PYTHONPATH" not in env


def test_the_plan_wins_over_what_was_inherited(make_plan):
    plan = make_plan("pd")
    assert worker_env(plan, {"OMP_NUM_THREADS": "64"})["OMP_NUM_THREADS"] == plan.workers[0].env["OMP_NUM_THREADS"]
    assert worker_env(plan, {"HOME": "/home/somebody"})["HOME"] == "/home/somebody"
