"""A plan as a table that reads well in 80 columns."""

from rich.console import Console
from rich.table import Table

from appliance.documents import Plan


def show_plan(console: Console, plan: Plan, with_reasons: bool = True) -> None:
    """Print the plan's workers and router, and below them the reason for each decision."""
    console.print(
        f"plan {plan.identity()[:12]}: {plan.topology} of {plan.model.served_name} on {plan.engine.name} "
        f"{plan.engine.version} ({plan.engine.device}), front door {plan.endpoint()}",
        markup=False,
    )
    table = Table("worker", "role", "GPUs", "NUMA", "TP", "ports", box=None, pad_edge=False)
    for worker in plan.workers:
        table.add_row(
            worker.name,
            worker.role,
            ",".join(map(str, worker.gpus)) or "none",
            "none" if worker.numa_node is None else str(worker.numa_node),
            str(worker.tp_size),
            " ".join(map(str, worker.ports().values())),
        )
    if plan.router:
        table.add_row("router", "", "", "", "", " ".join(map(str, plan.router.ports().values())))
    console.print(table)
    if with_reasons:
        shown: set[str] = set()
        holders = [("plan", plan.reasons), *((worker.name, worker.reasons) for worker in plan.workers)]
        for holder, reasons in [*holders, ("router", plan.router.reasons if plan.router else [])]:
            for reason in reasons:
                if reason not in shown:
                    shown.add(reason)
                    console.print(f"  {holder}: {reason}")
