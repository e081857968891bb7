"""A ProfileReport as tables."""

from rich.console import Console
from rich.table import Table

from appliance.documents import ExpertLoad, ProfiledKernel, ProfileReport, TraceProfile

LONGEST_NAME = 70


def show(console: Console, report: ProfileReport, top: int) -> None:
    """Print the report; of each trace the first `top` kernels."""
    console.print(heading(report))
    if report.simulated:
        console.print("SIMULATED: the trace was written by hand; nothing in it was measured")
    for trace in report.traces:
        show_trace(console, trace, top)
    if report.experts is not None:
        show_experts(console, report.experts)
    for remark in report.remarks:
        console.print(f"note: {remark}")


def heading(report: ProfileReport) -> str:
    """Whose profile it is."""
    if report.worker is None:
        return f"{report.source}, read {report.date}"
    return f"worker {report.worker} of plan {(report.plan_identity or '')[:12]}, {report.date}: {report.load}"


def show_trace(console: Console, trace: TraceProfile, top: int) -> None:
    """Print one device of one trace."""
    rank = "" if trace.rank is None else f", rank {trace.rank}"
    if trace.counts == "operators":
        device = "CPU operators: no GPU ran here"
    else:
        device = f"{trace.gpu.name}, {trace.gpu.multiprocessors} SMs" if trace.gpu else "a GPU that has no name here"
    console.print(f"\n{trace.file}{rank}: {device}")
    if trace.steps:
        console.print("steps: " + ", ".join(f"{step.count} x {step.name}" for step in trace.steps[:5]))
    console.print(f"busy {ms(trace.busy_us)} of {ms(trace.wall_us)}")
    if trace.gaps is not None:
        gaps = trace.gaps
        console.print(
            f"idle {gaps.share:.1%} in {gaps.count} gaps, longest {gaps.longest_us:.1f} µs; "
            f"waiting for a launch {gaps.launch_share:.1%} of the whole time (launch-bound); communication "
            f"{trace.communication_share:.1%} of the kernels' time"
        )
    if trace.counts == "kernels":
        console.print("by class: " + ", ".join(f"{one.kernel_class} {one.share:.1%}" for one in trace.classes))
    console.print()
    console.print(kernel_table(trace, top))
    if len(trace.kernels) > top:
        rest = sum(one.share for one in trace.kernels[top:])
        console.print(f"and {len(trace.kernels) - top} more with {rest:.1%} of the time")
    for copy in trace.copies:
        moved = f", {copy.bytes / 1e6:.2f} MB" if copy.bytes else ""
        console.print(f"{copy.kind}: {copy.count} times, {ms(copy.total_us)}{moved}")
    for one in trace.empty_gpu():
        console.print(
            f"LEAVES THE GPU EMPTY  {shorten(one.name)}: {one.blocks} blocks on {trace.gpu.multiprocessors} SMs, "
            f"{one.share:.1%} of the time"
        )


def kernel_table(trace: TraceProfile, top: int) -> Table:
    """The first kernels (operators) by time."""
    if trace.counts == "operators":
        table = Table("operator, own time", "count", "total", "mean µs", "share", box=None, pad_edge=False)
        for one in trace.kernels[:top]:
            table.add_row(shorten(one.name), str(one.count), ms(one.total_us), f"{one.mean_us:.1f}", f"{one.share:.1%}")
        return table
    columns = ["kernel", "class", "count", "total", "mean µs", "share", "blocks", "threads", "regs", "shared", "waves"]
    table = Table(*columns, "occupancy", "", box=None, pad_edge=False)
    for one in trace.kernels[:top]:
        table.add_row(*kernel_row(one))
    return table


def kernel_row(one: ProfiledKernel) -> list[str]:
    """A kernel as the texts of its row."""
    return [
        shorten(one.name),
        one.kernel_class,
        str(one.count),
        ms(one.total_us),
        f"{one.mean_us:.1f}",
        f"{one.share:.1%}",
        text(one.blocks),
        text(one.threads),
        text(one.registers),
        text(one.shared_bytes),
        "-" if one.waves is None else f"{one.waves:.2f}",
        "-" if one.occupancy is None else f"{one.occupancy:.0%}",
        "EMPTY" if one.leaves_gpu_empty else "",
    ]


def show_experts(console: Console, load: ExpertLoad) -> None:
    """Print how evenly experts were loaded and what placements would give."""
    console.print(f"\nexperts: {load.file}, {load.passes} passes, {len(load.layers)} layers of {load.experts} experts")
    table = Table("layer", "busiest expert", "its share", "even share", "experts used", box=None, pad_edge=False)
    worst = sorted(load.layers, key=lambda layer: -layer.busiest_share)[:5]
    for layer in worst:
        table.add_row(
            str(layer.layer), str(layer.busiest_expert), f"{layer.busiest_share:.1%}", f"{layer.even_share:.1%}",
            str(layer.experts_used),
        )  # fmt: skip
    console.print(table)
    console.print(f"\nplacements, judged on {load.evaluated_passes} passes:")
    columns = ["placement", "ranks", "busiest rank", "balancedness", "time of experts"]
    table = Table(*columns, box=None, pad_edge=False)
    for one in load.placements:
        table.add_row(
            one.name, str(one.ranks), f"{one.busiest_rank_share:.1%}", f"{one.balancedness:.2f}",
            f"x {one.slowdown:.2f}",
        )  # fmt: skip
    console.print(table)
    if load.batches:
        console.print("\nlarger batches, as consecutive passes taken together:")
        columns = ["passes", "assignments", "experts used", "assignments each", "balancedness"]
        table = Table(*columns, box=None, pad_edge=False)
        for batch in load.batches:
            table.add_row(
                str(batch.passes), f"{batch.assignments:.1f}", f"{batch.experts_used:.1f}",
                f"{batch.assignments_per_used_expert:.2f}", f"{batch.balancedness:.2f} on {batch.ranks}",
            )  # fmt: skip
        console.print(table)
    for limit in load.limits:
        console.print(f"limit: {limit}")


def shorten(name: str) -> str:
    """A kernel's name in one line of a table: the document holds the whole."""
    plain = name.replace("\n", " ")
    return plain if len(plain) <= LONGEST_NAME else plain[: LONGEST_NAME - 1] + "…"


def ms(us: float) -> str:
    """Microseconds as milliseconds."""
    return f"{us / 1000:.3f} ms"


def text(value: int | None) -> str:
    """A figure, or a dash for none."""
    return "-" if value is None else str(value)
