"""From a plan to the command of its router."""

import sys

from appliance.documents import Plan


def command(plan: Plan) -> list[str]:
    """The argument vector of the plan's router. The plan must have one."""
    router = plan.router
    words = [sys.executable, "-m", "smg", "launch", "--host", plan.router_host(), "--port", str(router.port)]
    # the metrics listener would take 0.0.0.0 by default
    words += ["--prometheus-host", plan.host, "--prometheus-port", str(router.metrics_port)]
    if plan.topology == "pd":
        words += ["--pd-disaggregation"]
        for worker in plan.workers:
            if worker.role == "prefill":
                words += ["--prefill", plan.url(worker.port), str(worker.bootstrap_port)]
        for worker in plan.workers:
            if worker.role == "decode":
                words += ["--decode", plan.url(worker.port)]
    else:
        words += ["--worker-urls", *(plan.url(worker.port) for worker in plan.workers)]
    return words + router.args
