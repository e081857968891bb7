"""Whether every worker runs our kernels as planned: SGLang itself would serve on without them."""

from appliance.documents import Plan
from appliance.engines.sglang import kernels
from appliance.engines.sglang.client import SglangClient


def kernel_mismatches(plan: Plan) -> list[str]:
    """What the workers report of their kernels against the plan, a line each. Raises CheckFailed where one is mute."""
    return [
        f"{worker.name}: {line}"
        for worker in plan.workers
        for line in kernels.mismatches(worker, SglangClient(plan.url(worker.port)).server_info())
    ]
