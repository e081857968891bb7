"""The environment of a worker: the caller's, made safe for loopback and GPU order, then the plan's own."""

from collections.abc import Mapping

from appliance.documents import Plan, Worker
from appliance.engines.sglang import command as sglang

LOOPBACK = ["localhost", "127.0.0.1", "::1"]
PROXIES = ["http_proxy", "https_proxy", "all_proxy"]


def worker_environment(plan: Plan, worker: Worker, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment in which `worker` is started; what the plan says wins over what was inherited."""
    env = without_proxies(inherited)
    if worker.gpus:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of the plan's GPU indices
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, worker.gpus))
    return env | sglang.environment(plan, worker) | worker.env


def router_environment(plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment in which the plan's router is started."""
    return without_proxies(inherited) | (plan.router.env if plan.router else {})


def without_proxies(inherited: Mapping[str, str]) -> dict[str, str]:
    """`inherited` without proxies: engine, router and KV transfer talk on loopback, where a proxy is in the way."""
    env = {name: value for name, value in inherited.items() if name.lower() not in PROXIES}
    env["no_proxy"] = env["NO_PROXY"] = ",".join(LOOPBACK)
    return env
