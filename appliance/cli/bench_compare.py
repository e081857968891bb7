"""`appliance bench compare`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import json_option


@click.command()
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("others", metavar="RECORD...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="What is worse by more than this share, and beyond the noise, is a regression.",
)
@click.option("--all", "everything", is_flag=True, help="Show figures that do not differ as well.")
@json_option
def command(base: Path, others: tuple[Path, ...], threshold: float, everything: bool, as_json: bool) -> None:
    """Compare records of `bench serve` with BASE: what differs beyond the noise of its repetitions, and what else is
    unlike. Exit code 1 on a regression.
    """
    from appliance.bench.compare import compare
    from appliance.cli.bench_compare_table import show
    from appliance.cli.output import results
    from appliance.documents import BenchRecord

    if as_json and len(others) > 1:
        raise click.UsageError("--json prints one document; expected one RECORD beside BASE")
    first = BenchRecord.read(base)
    found = [compare(first, BenchRecord.read(other), threshold) for other in others]
    for comparison in found:
        if as_json:
            sys.stdout.write(comparison.to_json())
        else:
            show(results, comparison, everything)
    sys.exit(1 if any(comparison.regressions() for comparison in found) else 0)
