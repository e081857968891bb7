"""`appliance status`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import json_option, state_option


@click.command()
@state_option
@click.option("--web", is_flag=True, help="Serve a live page of it on 127.0.0.1 until Ctrl-C.")
@click.option("--port", type=click.IntRange(0, 65535), help="With --web: its port; 0: any free one.  [default: 8300]")
@json_option
def command(state_dir: Path, web: bool, port: int | None, as_json: bool) -> None:
    """Show what `up` runs: workers, router, load, KV cache, transfers, GPUs. Exit code 0: all of it serves; 1: not."""
    from appliance.supervisor.status import status

    if web and as_json:
        raise click.UsageError("--web serves a page; expected no --json beside it")
    if port is not None and not web:
        raise click.UsageError("--port belongs to --web")
    if web:
        serve(state_dir, 8300 if port is None else port)
        return
    found = status(state_dir)
    if found is None:
        click.echo("null" if as_json else f"nothing has run in {state_dir}")
        sys.exit(1)
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        show(found, state_dir)
    sys.exit(0 if found.serves() else 1)


def serve(state_dir: Path, port: int) -> None:
    """Serve the live page until a signal ends this process."""
    from appliance.cli.interrupt import interruptible
    from appliance.cli.output import say
    from appliance.preflight.look import look
    from appliance.supervisor.status import status
    from appliance.web.status_server import Findings, server

    interruptible()
    with server(port, lambda: status(state_dir), Findings(lambda: look(state_dir))) as page:
        say(f"http://127.0.0.1:{page.server_address[1]}/  (Ctrl-C ends it)")
        page.serve_forever(poll_interval=0.2)


def show(found, state_dir: Path) -> None:
    """Print a Status as a table for people."""
    from rich.table import Table

    from appliance.cli.output import results

    results.print(f"{found.phase}  {found.topology}  {found.model}  {found.endpoint}  since {found.started}")
    table = Table("process", "phase", "answers", "pid", "port", "RSS MiB", "restarts", box=None, pad_edge=False)
    for process in found.processes:
        table.add_row(
            process.name,
            process.phase,
            "yes" if process.answers else "no",
            str(process.pid or ""),
            str(process.port),
            str(process.resident_mib or ""),
            str(process.restarts),
        )
    results.print(table)
    if found.loads:
        results.print(loads_table(found))
    if found.gpus:
        results.print(gpus_table(found))
    for process in found.processes:
        if process.last_error and not found.error:
            results.print(f"{process.name} {process.last_error}")
    if found.error:
        results.print(f"error: {found.error}")
    results.print(f"logs: {state_dir}/logs")


def loads_table(found):
    """What the workers are doing."""
    from rich.table import Table

    table = Table("worker", "running", "waiting", "KV use", "tok/s out", "KV sent MB", "ms", box=None, pad_edge=False)
    for load in found.loads:
        table.add_row(
            load.name,
            str(load.running),
            str(sum(load.queued.values())),
            f"{load.kv_use:.1%}",
            f"{load.output_tokens_per_s:.1f}",
            f"{load.kv_bytes / 1e6:.1f}" if load.kv_transfers else "",
            f"{load.kv_latency_ms:.1f}" if load.kv_latency_ms is not None else "",
        )
    return table


def gpus_table(found):
    """The plan's GPUs at this moment."""
    from rich.table import Table

    table = Table("GPU", "MiB used", "of", "W", "degrees C", "slowed by", box=None, pad_edge=False)
    for gpu in found.gpus:
        numbers = (gpu.memory_used_mib, gpu.memory_mib, gpu.power_w, gpu.temperature_c)
        table.add_row(str(gpu.index), *("" if n is None else f"{n:g}" for n in numbers), ", ".join(gpu.throttled or []))
    return table
