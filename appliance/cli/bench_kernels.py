"""`appliance bench kernels`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import json_option


@click.command()
@click.option(
    "--operation",
    "operations",
    type=click.Choice(["sparse_mla_decode", "indexer_logits"]),
    multiple=True,
    help="Measure this one; may be given several times.  [default: all]",
)
@click.option("--repetitions", type=click.IntRange(10, 10000), default=50, show_default=True, help="Of every kernel.")
@click.option("--quick", is_flag=True, help="Fewer shapes.")
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Show a saved document instead of measuring.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Write the document to this file.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the times into this SVG file.")
@json_option
def command(
    operations: tuple[str, ...],
    repetitions: int,
    quick: bool,
    saved: tuple[Path, ...],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Our kernels beside those of SGLang, FlashMLA, FlashInfer and DeepGEMM, as far as this GPU runs them.

    All in one process, by CUDA graph replay with the L2 cache flushed before each. Kernels are compared within a run
    only: two runs differ in clocks, driver and neighbours.
    """
    from appliance.bench.kernels import plot as picture
    from appliance.bench.kernels import table
    from appliance.bench.kernels.run import run
    from appliance.cli.output import results, say
    from appliance.documents import KernelBench
    from appliance.errors import InputError

    if len(saved) > 1:
        raise InputError(
            f"--from {saved[0]} and --from {saved[1]} are two runs, and kernels are compared within a run only; "
            "expected one file"
        )
    if saved and (operations or quick):
        raise InputError("--from shows a saved run; expected no --operation and no --quick beside it")
    if plot is not None and plot.suffix != ".svg":
        raise InputError(f"--plot {plot}: expected a file that ends with .svg")
    bench = KernelBench.read(saved[0]) if saved else run(list(operations), repetitions, quick, say)
    if output is not None:
        bench.write(output)
    if plot is not None:
        picture.draw(bench, plot)
    if as_json:
        sys.stdout.write(bench.to_json())
    else:
        table.show(results, bench)
