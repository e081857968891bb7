"""Line and bar charts as SVG: axes with words and units, series told apart by colour, mark and name."""

import math
from dataclasses import dataclass
from html import escape
from importlib.resources import files

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 76, 130, 20, 56
SERIES = 5
"""Colours that the style knows."""


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    label: str = ""


@dataclass(frozen=True)
class Series:
    name: str
    points: list[Point]


def ticks(most: float, count: int = 5) -> list[float]:
    """Round numbers from 0 to at least `most`."""
    if most <= 0 or not math.isfinite(most):
        return [0.0, 1.0]
    rough = most / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999999)
    return [round(step * n, 10) for n in range(math.ceil(most / step - 1e-9) + 1)]


def lines(title: str, x: str, y: str, series: list[Series]) -> str:
    """A line chart from zero; points carry their labels."""
    xs, ys = (ticks(max((getattr(p, axis) for s in series for p in s.points), default=1.0)) for axis in ("x", "y"))
    parts = [frame(x, y, xs, ys)]
    for number, one in enumerate(series):
        colour = number % SERIES
        at = [(across(point.x, xs), up(point.y, ys), point.label) for point in one.points]
        path = " ".join(f"{'M' if i == 0 else 'L'}{px:.1f} {py:.1f}" for i, (px, py, _) in enumerate(at))
        parts.append(f'<path class="line s{colour}" d="{path}"/>')
        for px, py, label in at:
            parts.append(mark(px, py, colour))
            parts.append(f'<text x="{px + 7:.1f}" y="{py - 6:.1f}">{escape(label)}</text>')
        parts += legend(number, colour, one.name)
    return svg(title, "".join(parts))


def bars(title: str, x: str, y: str, groups: list[str], series: list[Series]) -> str:
    """Bars in groups: the point number n of each series stands in the group number n."""
    ys = ticks(max((point.y for one in series for point in one.points), default=1.0))
    parts = [frame(x, y, [], ys)]
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    for place, group in enumerate(groups):
        middle = LEFT + room * (place + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(group)}</text>')
    for number, one in enumerate(series):
        colour, width = number % SERIES, room * 0.8 / max(1, len(series))
        for place, point in enumerate(one.points):
            left, top = LEFT + room * (place + 0.1) + width * number, up(point.y, ys)
            parts.append(
                f'<rect class="f{colour}" x="{left:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}" '
                f'height="{HEIGHT - BOTTOM - top:.1f}"/>'
            )
            parts.append(
                f'<text x="{left + width / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{escape(point.label)}</text>'
            )
        parts += legend(number, colour, one.name)
    return svg(title, "".join(parts))


def across(value: float, xs: list[float]) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / xs[-1]


def up(value: float, ys: list[float]) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / ys[-1]


def mark(x: float, y: float, colour: int) -> str:
    """A mark of the series' own shape: colours alone do not tell series apart."""
    if colour == 0:
        return f'<circle class="f0" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    if colour == 1:
        return f'<rect class="f1" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    corners = {2: [(0, -6), (5, 4), (-5, 4)], 3: [(0, -6), (6, 0), (0, 6), (-6, 0)]}.get(
        colour, [(0, 6), (5, -4), (-5, -4)]
    )
    return f'<path class="f{colour}" d="M{" L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners)} Z"/>'


def legend(number: int, colour: int, name: str) -> list[str]:
    x, y = WIDTH - RIGHT + 18, TOP + 14 + 20 * number
    return [mark(x, y - 4, colour), f'<text x="{x + 12}" y="{y}">{escape(name)}</text>']


def frame(x: str, y: str, xs: list[float], ys: list[float]) -> str:
    """Grid, axes, ticks, and what the axes are."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value in ys:
        at = up(value, ys)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f} H{right}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in xs:
        at = across(value, xs)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP} V{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP} V{bottom} H{right}"/>')
    middle = (LEFT + right) / 2
    parts.append(f'<text class="x-label" x="{middle:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x)}</text>')
    turned = f"translate(16 {(TOP + bottom) / 2:.0f}) rotate(-90)"
    parts.append(f'<text class="y-label" transform="{turned}" text-anchor="middle">{escape(y)}</text>')
    return "".join(parts)


def svg(title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>{body}</svg>'
    )


def standalone(picture: str) -> str:
    """The picture as a file of its own, for papers: with the light style in it, on white."""
    style = files("appliance.web").joinpath("look.css").read_text(encoding="utf-8")
    light = style[: style.index("@media")]
    rules = "".join(line for line in style.splitlines(keepends=True) if line.startswith("svg"))
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    head, _, rest = picture.partition("</title>")
    return f"{head}</title><style>{light}{rules}</style>{ground}{rest}\n"
