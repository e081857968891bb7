"""What other documents add to the report: kernels, profiles, and how a second record differs from the first."""

from html import escape

from appliance.documents import Comparison, ExpertLoad, KernelBench, ProfileReport, TraceProfile
from appliance.web.page import download, table


def kernels(bench: KernelBench) -> str:
    """A table of kernels side by side."""
    rows = []
    for case in bench.cases:
        shape = ", ".join(f"{name} {value}" for name, value in case.shape.items())
        for name, time in case.kernels.items():
            rows.append(
                [
                    f"{case.operation}: {shape}",
                    name,
                    f"{time.us.median:.4g}" if time.us else "",
                    f"{time.us.p10:.4g} to {time.us.p90:.4g}" if time.us else "",
                    f"{case.bytes / (time.us.median * 1e-6) / bench.gpu.copy_bytes_per_s:.1%}" if time.us else "",
                    f"{case.blocks} of {case.blocks_at_once}",
                    time.failed or "",
                ]
            )
    columns = ["case", "kernel", "us", "p10 to p90", "of copy bandwidth", "our blocks of those at once", "why not"]
    return (
        f"<p>{escape(bench.gpu.name)}, {escape(bench.date)}</p>"
        + table("Kernels at the same work, in one process", columns, rows)
        + download("kernels", columns, rows)
    )


def comparison(found: Comparison) -> str:
    """How a record differs from the first."""
    unlike = "".join(f"<li>{escape(line)}</li>" for line in found.unlike)
    head = f"<p>first: {escape(found.base)}<br>this: {escape(found.other)}</p>"
    head += f'<p class="loud">Unlike configurations:</p><ul>{unlike}</ul>' if unlike else ""
    differing = [figure for figure in found.figures if figure.verdict in ("better", "worse")]
    columns = ["cell", "figure", "first", "this", "change", "by chance", "verdict"]
    rows = [
        [
            f"{figure.topology}: {figure.workload.words()}",
            figure.figure,
            f"{figure.before:.4g} {figure.unit}",
            f"{figure.after:.4g} {figure.unit}",
            "" if figure.change is None else f"{figure.change:+.1%}",
            "" if figure.chance is None else f"{figure.chance:.3g}",
            "regression" if figure.regression else figure.verdict,
        ]
        for figure in differing
    ]
    same = f"<p>{len(found.figures) - len(differing)} of {len(found.figures)} do not differ beyond their noise.</p>"
    caption = f"What differs; {found.test}"
    return head + (table(caption, columns, rows) + download("comparison", columns, rows) if rows else "") + same


MOST_KERNELS = 30


def profile(found: ProfileReport) -> str:
    """Where the time of a few steps went, and how evenly experts were loaded."""
    parts = []
    if found.simulated:
        parts.append('<p class="loud">SIMULATED: this trace was made up. No engine was profiled.</p>')
    source = [
        found.date,
        found.source,
        found.worker,
        found.load,
        found.engine_version and f"sglang {found.engine_version}",
    ]
    parts.append(f"<p>{escape(', '.join(part for part in source if part))}</p>")
    parts += [f"<p>{escape(remark)}</p>" for remark in found.remarks]
    parts += [trace(one) for one in found.traces]
    parts += [experts(found.experts)] if found.experts else []
    return "".join(parts)


def trace(found: TraceProfile) -> str:
    """The kernels of one device by time; those that leave the GPU empty are named first."""
    where = found.gpu.name if found.gpu else "operators of a CPU: nothing about a GPU follows from them"
    rank = "" if found.rank is None else f", rank {found.rank}"
    parts = [f"<h3>{escape(found.file)}{rank}: {escape(where)}</h3>"]
    for kernel in found.empty_gpu():
        sms = f" of {found.gpu.multiprocessors} SMs" if found.gpu else ""
        words = f"{kernel.name}: {kernel.blocks} blocks{sms}, {kernel.share:.1%} of the time: it leaves the GPU empty"
        parts.append(f'<p class="loud">{escape(words)}</p>')
    if found.gaps:
        words = f"idle {found.gaps.share:.1%} of the time, {found.gaps.launch_share:.1%} waiting for the CPU to launch"
        parts.append(f"<p>{escape(words)}; communication {found.communication_share:.1%} of the kernels' time</p>")
    columns = ["kernel", "class", "calls", "us, mean", "share", "blocks", "threads", "waves", "occupancy"]
    rows = [
        [
            kernel.name,
            kernel.kernel_class,
            str(kernel.count),
            f"{kernel.mean_us:.4g}",
            f"{kernel.share:.1%}",
            "" if kernel.blocks is None else str(kernel.blocks),
            "" if kernel.threads is None else str(kernel.threads),
            "" if kernel.waves is None else f"{kernel.waves:.3g}",
            "" if kernel.occupancy is None else f"{kernel.occupancy:.0%}",
        ]
        for kernel in found.kernels
    ]
    caption = f"{found.counts} by time, the first {min(MOST_KERNELS, len(rows))} of {len(rows)}"
    return "".join(parts) + table(caption, columns, rows[:MOST_KERNELS]) + download("profile", columns, rows)


def experts(found: ExpertLoad) -> str:
    """What a placement of experts would give, by the recorded loads."""
    columns = ["placement", "ranks", "redundant experts", "busiest rank's share", "balancedness", "slowdown"]
    rows = [
        [
            placement.name,
            str(placement.ranks),
            str(placement.redundant_experts),
            f"{placement.busiest_rank_share:.1%}",
            f"{placement.balancedness:.3f}",
            f"{placement.slowdown:.2f}",
        ]
        for placement in found.placements
    ]
    caption = f"Experts: {found.experts}, judged on {found.evaluated_passes} of {found.passes} recorded passes"
    limits = "".join(f"<li>{escape(line)}</li>" for line in found.limits)
    return f"<h3>Expert load</h3>{table(caption, columns, rows)}{download('experts', columns, rows)}<ul>{limits}</ul>"
