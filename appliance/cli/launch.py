"""`appliance launch`"""

from pathlib import Path

import click

from appliance.documents import Plan
from appliance.launch.worker import exec_router, exec_worker


@click.command()
@click.argument("worker")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), required=True, help="The plan's file.")
def command(worker: str, plan_file: Path) -> None:
    """Become WORKER of the plan: bind to its NUMA node, set its environment, exec its engine.

    The name "router" stands for the plan's router. Under systemd (Type=notify, NotifyAccess=all) readiness is
    reported after a real generated token, and the watchdog is fed from health.
    """
    plan = Plan.read(plan_file)
    if worker == "router":
        exec_router(plan)
    exec_worker(plan, worker)
