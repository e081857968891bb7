"""`appliance bench`"""

import click

from appliance.cli.lazy import LazyGroup

BENCHMARKS = {
    "serve": "Topologies under load, side by side on this machine.",
    "kernels": "Our kernels beside those of others.",
    "profile": "Where the time of a few decode steps goes, and how evenly experts are loaded.",
    "compare": "Two or more records: what differs beyond its noise.",
    "report": "Records as one HTML page.",
}


@click.group(cls=LazyGroup, commands_of=BENCHMARKS, module="appliance.cli.bench_{}")
def command() -> None:
    """Measure side by side, with provenance."""
