"""The checks that every start makes, cheapest first: each failure is one line, before any process exists."""

from pathlib import Path

from appliance.documents import Plan
from appliance.engines.sglang import command, release
from appliance.launch import numa
from appliance.recon.model import model_report


def require_startable(plan: Plan) -> None:
    """Raise InputError unless engine, arguments, NUMA nodes and model folder are as the plan needs them."""
    release.require(plan)
    for worker in plan.workers:
        command.command(plan, worker)
        command.environment(plan, worker)
        if worker.numa_node is not None:
            numa.usable_cpus(worker.numa_node)
    model_report(Path(plan.model.path))
