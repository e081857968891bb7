"""The sections of the report, each from BenchRecords: pictures, tables, and the numbers behind them."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from appliance.bench.report.chart import Point, Series, bars, lines
from appliance.documents import BenchRecord, Cell
from appliance.web.page import download, table


@dataclass(frozen=True)
class Picture:
    """A chart with what it says, and its numbers."""

    name: str
    svg: str
    caption: str
    columns: list[str]
    rows: list[list]

    def html(self) -> str:
        """The picture in the page."""
        return (
            f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{escape(self.name, quote=True)}">'
            f"{self.svg}</div><figcaption>{escape(self.caption)}</figcaption>"
            f"{download(self.name, self.columns, self.rows)}</figure>"
        )


def median(cell: Cell, figure: str) -> float | None:
    """The median of a figure; None where the cell has none."""
    found = cell.figures.get(figure)
    return None if found is None else found.median


def plain(record: BenchRecord, of: Callable[[Cell], bool] = lambda cell: True) -> list[Cell]:
    """The cells of the matrix."""
    return [cell for cell in record.cells if cell.workload.name == "plain" and of(cell)]


def load(cell: Cell) -> str:
    """Concurrency or rate, as a point's label."""
    return str(cell.workload.concurrency) if cell.workload.concurrency else f"{cell.workload.request_rate:g}/s"


def shapes(record: BenchRecord) -> list[tuple[int, int]]:
    """(input, output) of the matrix, in order."""
    return sorted({(cell.workload.input_tokens, cell.workload.output_tokens) for cell in plain(record)})


def curves(record: BenchRecord) -> list[Picture]:
    """Throughput against latency, a picture for each pair of lengths and each latency."""
    found = []
    for shape in shapes(record):
        for figure, what in (("TTFT p50", "time to the first token"), ("TPOT p50", "time of each further token")):
            cells = plain(
                record, lambda cell, shape=shape: shape == (cell.workload.input_tokens, cell.workload.output_tokens)
            )
            series, rows = [], []
            for topology in record.asked.topologies:
                points = [
                    Point(median(cell, figure), median(cell, "output tok/s"), load(cell))
                    for cell in cells
                    if cell.topology == topology and median(cell, figure) is not None
                ]
                series += [Series(topology, points)] if points else []
                rows += [[topology, point.label, point.x, point.y] for point in points]
            if not series:
                continue
            title = f"{shape[0]} tokens in, {shape[1]} out: throughput against {what}"
            columns = ["topology", "load", f"{figure} ms", "output tok/s"]
            picture = lines(title, f"{figure}, ms", "output tokens a second, whole box", series)
            caption = f"{title}. Up and left is better; points carry the requests in flight (or a second)."
            found.append(Picture(f"{figure.split()[0].lower()}-{shape[0]}-{shape[1]}", picture, caption, columns, rows))
    return found


def heat_map(record: BenchRecord) -> str:
    """The matrix of each topology as a table: the darker, the nearer to the best of the row among all topologies."""
    parts = []
    loads = sorted({cell.workload.concurrency or cell.workload.request_rate for cell in plain(record)})
    if not loads:
        return ""
    best: dict[tuple, float] = {}
    for cell in plain(record):
        value = median(cell, "output tok/s") or 0.0
        best[cell.workload.key()] = max(best.get(cell.workload.key(), 0.0), value)
    for topology in record.asked.topologies:
        rows, classes = [], []
        for shape in shapes(record):
            row, tints = [f"{shape[0]} in, {shape[1]} out"], [""]
            for one in loads:
                match = plain(
                    record,
                    lambda cell, shape=shape, one=one, topology=topology: (
                        cell.topology == topology
                        and shape == (cell.workload.input_tokens, cell.workload.output_tokens)
                        and one == (cell.workload.concurrency or cell.workload.request_rate)
                    ),
                )
                value = median(match[0], "output tok/s") if match else None
                row.append("" if value is None else f"{value:.0f}")
                tints.append(tint(value, best[match[0].workload.key()]) if match else "")
            rows.append(row)
            classes.append(tints)
        columns = ["tokens", *(f"{one:g}" for one in loads)]
        caption = (
            f"{topology}: output tok/s by requests in flight (or a second); darkest: the best topology of that cell"
        )
        parts.append(table(caption, columns, rows, classes) + download(f"matrix-{topology}", columns, rows))
    return "".join(parts)


def tint(value: float | None, best: float) -> str:
    """The class of a cell: h4 within 2 % of the best, h0 below half of it."""
    share = (value or 0.0) / best if best else 0.0
    return next((f"h{4 - place}" for place, least in enumerate((0.98, 0.9, 0.75, 0.5)) if share >= least), "h0")


def tails(record: BenchRecord) -> list[Picture]:
    """Tail isolation: short requests alone and behind long ones."""
    mixed = [cell for cell in record.cells if cell.workload.name == "tail isolation"]
    if not mixed:
        return []
    first = mixed[0].workload
    series: dict[str, list[Point]] = {"alone, p50": [], "behind, p50": [], "behind, p99": []}
    rows = []
    for cell in mixed:
        alone = next(
            (
                other
                for other in plain(record)
                if other.topology == cell.topology
                and (other.workload.input_tokens, other.workload.output_tokens, other.workload.concurrency)
                == (first.input_tokens, first.output_tokens, first.concurrency)
            ),
            None,
        )
        values = [
            (median(alone, "TTFT p50") if alone else None) or 0.0,
            median(cell, "TTFT p50") or 0.0,
            median(cell, "TTFT p99") or 0.0,
        ]
        for points, value in zip(series.values(), values, strict=True):
            points.append(Point(0.0, value, f"{value:.0f}"))
        rows.append([cell.topology, *values])
    title = (
        f"Tail isolation: first token of requests of {first.input_tokens} tokens, alone and behind ones of "
        f"{first.long_input_tokens}"
    )
    groups = [cell.topology for cell in mixed]
    picture = bars(title, "topology", "time to the first token, ms", groups, [Series(*one) for one in series.items()])
    columns = ["topology", "alone TTFT p50 ms", "behind TTFT p50 ms", "behind TTFT p99 ms"]
    return [Picture("tail-isolation", picture, f"{title}. Lower is better.", columns, rows)]


def limits(record: BenchRecord) -> str:
    """What share of each limit is reached, and which one binds: the one that is reached most."""
    rows = []
    for cell in record.cells:
        nearest = max(cell.limits, key=lambda limit: limit.share, default=None)
        for limit in cell.limits:
            rows.append(
                [
                    f"{cell.topology}: {cell.workload.words()}",
                    limit.of,
                    f"{limit.measured:.4g} {limit.unit}",
                    f"{limit.limit:.4g} {limit.unit}",
                    f"{limit.share:.1%}",
                    limit.binds + (", binds" if limit is nearest else ""),
                    limit.formula,
                ]
            )
    if not rows:
        return '<p class="soft">No limit is known: the machine has no GPU, or none with a data sheet here.</p>'
    columns = ["cell", "of", "reached", "limit", "share", "limited by", "how the limit comes about"]
    return table("Shares of what physics allows; a limit is a bound, never a prediction", columns, rows) + download(
        "limits", columns, rows
    )


FIGURES = ["output tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "E2E p50", "goodput", "acceptance length"]
FIGURES += ["KV transfer", "KV bandwidth", "energy"]


def all_cells(record: BenchRecord) -> str:
    """Every cell with every figure: median, and least to most."""
    shown = [name for name in FIGURES if any(name in cell.figures for cell in record.cells)]
    rows = []
    for cell in record.cells:
        row = [f"{cell.topology}: {cell.workload.words()}", f"{cell.completed} of {cell.requests}"]
        for name in shown:
            found = cell.figures.get(name)
            row.append("" if found is None else f"{found.median:.4g} ({found.least:.4g} to {found.most:.4g})")
        row.append(", ".join(f"{role.role} {per_gpu(role)}" for role in cell.roles))
        rows.append(row)
    columns = ["cell", "answered", *shown, "tok/s a GPU of the role"]
    return table("Medians over the repetitions (least to most); times in ms", columns, rows) + download(
        "cells", columns, rows
    )


def per_gpu(role) -> str:
    """Throughput of a role by its GPUs, in words."""
    parts = [(role.input_tokens_per_s_per_gpu, "in"), (role.output_tokens_per_s_per_gpu, "out")]
    return " ".join(f"{value:.4g} {way}" for value, way in parts if value is not None) or "no GPU"
