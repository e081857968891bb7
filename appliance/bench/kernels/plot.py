"""A KernelBench as a picture (SVG): time over batch, both logarithmic, a panel for every other combination of sizes."""

from pathlib import Path

from appliance.documents import KernelBench, KernelCase
from appliance.errors import InputError

OVER = "batch"
COLUMNS = 4


def draw(bench: KernelBench, path: Path) -> None:
    """Write the picture to `path`. Raises InputError where it cannot be written or matplotlib is absent."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("--plot needs matplotlib: install the extra 'plot' of this package") from None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "appliance"  # the same document gives the same picture
    from matplotlib import pyplot

    panels = grouped(bench.cases)
    rows = -(-len(panels) // COLUMNS)
    figure, axes = pyplot.subplots(
        rows, COLUMNS, figsize=(4 * COLUMNS, 3 * rows), squeeze=False, layout="constrained"
    )  # fmt: skip
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, cases) in zip(axes.flat, panels.items(), strict=False):
        for name in dict.fromkeys(name for case in cases for name in case.kernels):
            points = [(case.shape[OVER], case.kernels[name].us.median) for case in cases if timed(case, name)]
            axis.plot(*zip(*sorted(points), strict=True) if points else ([], []), marker="o", markersize=3, label=name)
        least = sorted((case.shape[OVER], case.bytes / bench.gpu.copy_bytes_per_s * 1e6) for case in cases)
        axis.plot(*zip(*least, strict=True), linestyle=":", color="grey", label="bytes / copy bandwidth")
        axis.set(xscale="log", yscale="log", title=title, xlabel=OVER, ylabel="us")
        axis.title.set_fontsize(8)
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=6)
    figure.suptitle(f"{bench.gpu.name}, {bench.date}, torch {bench.packages.get('torch')}, median us", fontsize=9)
    try:
        figure.savefig(path, metadata={"Date": None})
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        pyplot.close(figure)


def timed(case: KernelCase, name: str) -> bool:
    kernel = case.kernels.get(name)
    return kernel is not None and kernel.us is not None


def grouped(cases: list[KernelCase]) -> dict[str, list[KernelCase]]:
    """The cases by operation and all sizes but the batch, as the panel's title says them."""
    panels: dict[str, list[KernelCase]] = {}
    for case in cases:
        sizes = ", ".join(f"{name} {int(value)}" for name, value in case.shape.items() if name != OVER)
        panels.setdefault(f"{case.operation}: {sizes}", []).append(case)
    return panels
