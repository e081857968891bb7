"""`appliance demo`"""

import sys
from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import base_port_option, json_option, state_option, topology_option
from appliance.paths import cache_directory


@click.command()
@topology_option
@click.option("--keep", is_flag=True, help="Leave it serving and print a curl line.")
@base_port_option
@state_option
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path),
    default=cache_directory,
    show_default="$APPLIANCE_CACHE_DIR or ~/.cache/appliance",
    help="Folder that keeps the demo's model.",
)
@json_option
def command(topology: str, keep: bool, base_port: int, state_dir: Path, cache_dir: Path, as_json: bool) -> None:
    """Serve a tiny random model on this machine, end to end: real SGLang, real NIXL, real router; on its GPUs where it
    has some, otherwise on its CPUs.

    Makes the model, looks at the machine, prints the plan, starts it, checks its answers against one aggregated
    server token by token, measures it, writes a report, stops everything. Exit code 1 if a check does not hold.
    """
    from appliance.cli.demo_output import show_record, shown_demo
    from appliance.demo.run import run_demo
    from appliance.plan.ports import PortRange

    interruptible()
    with shown_demo() as listener:
        record = run_demo(topology, state_dir, cache_dir, keep, PortRange(base_port), listener)
    if as_json:
        click.echo(record.to_json(), nl=False)
    else:
        show_record(record, state_dir, keep)
    sys.exit(0 if all(check.passed for check in record.checks) else 1)
