"""A Comparison as a table."""

from itertools import groupby

from rich.console import Console
from rich.table import Table

from appliance.documents import ComparedFigure, Comparison

COLUMNS = ["figure", "before", "after", "change", "noise", "by chance", ""]


def show(console: Console, comparison: Comparison, everything: bool) -> None:
    """Print what differs; with `everything` what does not as well."""
    console.print(f"before: {comparison.base}")
    console.print(f"after:  {comparison.other}")
    for line in comparison.unlike:
        console.print(f"UNLIKE  {line}")
    shown = [figure for figure in comparison.figures if everything or figure.verdict in ("better", "worse")]
    for (topology, _), figures in groupby(shown, key=lambda figure: (figure.topology, figure.workload.key())):
        each = list(figures)
        console.print(f"\n{topology}: {each[0].workload.words()}")
        table = Table(*COLUMNS, box=None, pad_edge=False)
        for figure in each:
            table.add_row(*row(figure))
        console.print(table)
    console.print()
    same = sum(figure.verdict == "same" for figure in comparison.figures)
    once = sum(figure.verdict == "not comparable" for figure in comparison.figures)
    console.print(f"{same} of {len(comparison.figures)} figures do not differ beyond their noise; {comparison.test}")
    if once:
        console.print(f"{once} figures were measured once: nothing can be said of them")
    for side, cells in (("before", comparison.only_in_base), ("after", comparison.only_in_other)):
        if cells:
            console.print(f"only {side}: {'; '.join(cells)}")
    regressions = comparison.regressions()
    if regressions:
        console.print(f"{len(regressions)} regressions of more than {comparison.threshold:.0%}")


def row(figure: ComparedFigure) -> list[str]:
    """A figure as the texts of its row, in the order of COLUMNS."""
    return [
        figure.figure,
        f"{figure.before:.4g} {figure.unit}",
        f"{figure.after:.4g} {figure.unit}",
        "-" if figure.change is None else f"{figure.change:+.1%}",
        "-" if figure.noise is None else f"±{figure.noise:.1%}",
        "-" if figure.chance is None else f"{figure.chance:.3g}",
        "REGRESSION" if figure.regression else figure.verdict,
    ]
