"""What other documents add to the report: kernels, profiles, and how a second record differs from the first."""

from html import escape

from appliance.documents import Comparison, KernelBench
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
    same = f"<p>{len(found.figures) - len(differing)} of {len(found.figures)} figures do not differ beyond their noise.</p>"
    caption = f"What differs; {found.test}"
    return head + (table(caption, columns, rows) + download("comparison", columns, rows) if rows else "") + same
