"""Whether every running worker is the planned one."""

from appliance.documents import Check, Plan
from appliance.engines.sglang.client import SglangClient
from appliance.engines.sglang.identity import mismatches
from appliance.errors import CheckFailed


def check_identity(plan: Plan) -> list[Check]:
    """One check a worker: what the server on its port reports against the plan."""
    return [check_worker(plan, worker) for worker in plan.workers]


def check_worker(plan: Plan, worker) -> Check:
    """The check of one worker; a server that does not answer fails it."""
    name = f"identity of {worker.name}"
    try:
        info = SglangClient(plan.url(worker.port)).server_info()
    except CheckFailed as error:
        return Check(name=name, passed=False, evidence=str(error))
    found = mismatches(plan, worker, info)
    if found:
        return Check(name=name, passed=False, evidence="; ".join(found))
    return Check(name=name, passed=True, evidence=f"the server on port {worker.port} reports every planned argument")
