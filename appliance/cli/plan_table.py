"""A plan as text that reads well in 80 columns."""

from collections.abc import Iterable, Iterator

from rich.console import Console

from appliance.cli.plain_text import wrapped
from appliance.documents import CostedTopology, Plan

GIB = 1024**3


def show_plan(console: Console, plan: Plan, with_reasons: bool = True) -> None:
    """Print the plan's workers and router, and below them what they rest on."""
    for line in lines(plan, with_reasons):
        console.print(line)


def lines(plan: Plan, with_reasons: bool = True) -> Iterator[str]:
    """The text, line by line."""
    yield from wrapped(
        f"plan {plan.identity()[:12]}: {plan.topology} of {plan.model.served_name} on {plan.engine.name} "
        f"{plan.engine.version} ({plan.engine.device}), front door {plan.endpoint()}"
    )
    yield from workers(plan)
    if not with_reasons:
        return
    yield from section("why", (line for reason in dict.fromkeys(plan.reasons) for line in wrapped(reason, "  ")))
    chosen = next((one for one in plan.topologies if one.topology == plan.topology), None)
    if chosen is not None:
        yield from section("memory of one GPU, computed", memory(chosen))
        yield from section("bounds: what physics allows at best, not what to expect", bounds(chosen))
        yield from section("the other topologies here", others(plan))
    yield from section("settings", settings(plan))


def workers(plan: Plan) -> Iterator[str]:
    """The workers and the router, a row each."""
    rows = [["worker", "role", "GPUs", "NUMA", "TP", "ports"]]
    for worker in plan.workers:
        gpus = ",".join(map(str, worker.gpus)) or "none"
        node = "none" if worker.numa_node is None else str(worker.numa_node)
        rows.append([worker.name, worker.role, gpus, node, str(worker.tp_size), ports(worker.ports())])
    if plan.router:
        rows.append(["router", "", "", "", "", ports(plan.router.ports())])
    return table(rows)


def ports(named: dict[str, int]) -> str:
    """Port numbers, in the order of their fields."""
    return " ".join(map(str, named.values()))


def memory(costed: CostedTopology) -> Iterator[str]:
    """What each worker's GPUs hold, and what that rests on."""
    rows = [["worker", "weights", "reserve", "KV", "of GiB", "tokens", "context", "at once"]]
    rests: dict[str, None] = {}
    for worker in costed.workers:
        if worker.memory is None:
            rows.append([worker.name, *["-"] * 7])
            continue
        one = worker.memory
        sizes = [f"{size / GIB:.1f}" for size in (one.weights, one.reserve, one.kv_pool, one.capacity)]
        rows.append([worker.name, *sizes, f"{one.pool_tokens:,}", f"{one.context:,}", str(one.concurrency)])
        rests |= dict.fromkeys(one.rests_on)
    yield from table(rows, "  ")
    for line in rests:
        yield from wrapped(line, "    ")


def bounds(costed: CostedTopology) -> Iterator[str]:
    """Each bound with its formula."""
    if not costed.bounds:
        yield "  none: no data sheet of this GPU, or the model's sizes are not known"
    for one in costed.bounds:
        yield from wrapped(f"{one.of} ({one.case}): at {one.at} {one.value:,g} {one.unit}, by {one.binds}", "  ")
        yield from wrapped(one.formula, "    ")


def others(plan: Plan) -> Iterator[str]:
    """Those that were not chosen: whether they fit, and what speaks for and against them."""
    for one in plan.topologies:
        if one.topology == plan.topology:
            continue
        shape = " + ".join(f"TP{worker.tp_size}" for worker in one.workers)
        yield from wrapped(f"{one.topology} ({shape}): {'fits' if one.fits else 'does not fit'}", "  ")
        for reason in one.reasons:
            yield from wrapped(reason, "    ")


def settings(plan: Plan) -> Iterator[str]:
    """The reasons for arguments and variables: those of all workers once, then each worker's own."""
    each = {worker.name: worker.reasons for worker in plan.workers}
    alike = [reason for reason in next(iter(each.values())) if all(reason in reasons for reasons in each.values())]
    shared = {"all workers": alike} if len(each) > 1 else {}
    own = {name: [reason for reason in reasons if not shared or reason not in alike] for name, reasons in each.items()}
    for holder, reasons in {**shared, **own, "router": plan.router.reasons if plan.router else []}.items():
        if reasons:
            yield f"  {holder}"
        for reason in dict.fromkeys(reasons):
            yield from wrapped(reason, "    ")


def section(title: str, body: Iterable[str]) -> Iterator[str]:
    """An empty line, a title, and the lines below it."""
    yield ""
    yield title
    yield from body


def table(rows: list[list[str]], indent: str = "") -> Iterator[str]:
    """Rows with their columns in line."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield (indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
