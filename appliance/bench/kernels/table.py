"""A KernelBench as tables, one an operation."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from appliance.documents import KernelBench, KernelCase, KernelTime

OURS = "appliance"


def show(console: Console, bench: KernelBench) -> None:
    """Print what was measured where, and a table for each operation."""
    gpu = bench.gpu
    versions = ", ".join(f"{name} {version}" for name, version in bench.packages.items() if version)
    console.print(
        f"{gpu.name}, {gpu.multiprocessors} SMs, driver {gpu.driver or 'unknown'}, CUDA {bench.cuda}; {versions}"
    )
    console.print(
        f"{bench.date}; copy {gpu.copy_bytes_per_s / 1e12:.2f} TB/s, empty graph {gpu.empty_graph_us.median:.1f} us; "
        f"medians of up to {bench.repetitions} in us, p10-p90 of ours"
    )
    for operation in dict.fromkeys(case.operation for case in bench.cases):
        cases = [case for case in bench.cases if case.operation == operation]
        console.print(f"\n{operation}")
        show_whole(console, table(cases, gpu.copy_bytes_per_s))
        if any(kernel.us and not kernel.captured for case in cases for kernel in case.kernels.values()):
            console.print("  *: could not be captured in a graph; called from Python")
        for name, reason in bench.left_out.get(operation, {}).items():
            console.print(f"  without {name}: {reason}")
        for case in cases:
            for name, kernel in case.kernels.items():
                if kernel.failed is not None:
                    console.print(f"  {name} at {shape(case)}: {kernel.failed}")


def show_whole(console: Console, wide: Table) -> None:
    """Print a table at its own width, however narrow the terminal: numbers that are cut are of no use."""
    needed = Measurement.get(console, console.options.update(max_width=1000), wide).maximum
    Console(file=console.file, width=max(needed, console.width), highlight=False, markup=False).print(wide)


def table(cases: list[KernelCase], copy_bytes_per_s: float) -> Table:
    """Times by kernel; `bytes/copy`: what moving the bytes alone would take."""
    others = list(dict.fromkeys(name for case in cases for name in case.kernels if name != OURS))
    columns = [*cases[0].shape, "blocks", OURS, "p10-p90", "error", "bytes/copy"]
    result = Table(*columns, *(f"{name} (x)" for name in others), box=None, pad_edge=False)
    for case in cases:
        ours = case.kernels.get(OURS)
        result.add_row(
            *(str(int(value)) for value in case.shape.values()),
            f"{case.blocks}/{case.blocks_at_once}",
            *own_cells(ours),
            f"{case.bytes / copy_bytes_per_s * 1e6:.2f}",
            *(other_cell(case.kernels.get(name), ours) for name in others),
        )
    return result


def own_cells(kernel: KernelTime | None) -> list[str]:
    if kernel is None or kernel.us is None:
        return ["-", "-", "-"]
    error = "-" if kernel.relative_error is None else f"{kernel.relative_error:.1e}"
    return [f"{kernel.us.median:.1f}", f"{kernel.us.p10:.1f}-{kernel.us.p90:.1f}", error]


def other_cell(kernel: KernelTime | None, ours: KernelTime | None) -> str:
    """Another kernel's time, and how many times ours it is."""
    if kernel is None or kernel.us is None:
        return "-"
    ratio = f" ({kernel.us.median / ours.us.median:.1f})" if ours and ours.us else ""
    return f"{kernel.us.median:.1f}{'' if kernel.captured else '*'}{ratio}"


def shape(case: KernelCase) -> str:
    """Its sizes in one line."""
    return " ".join(f"{name}={int(value)}" for name, value in case.shape.items())
