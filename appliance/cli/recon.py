"""`appliance recon [all|model|engine|machine]`"""

import gc
import os
import sys
from pathlib import Path

import click

from appliance.cli.options import json_option
from appliance.cli.recon_engine import engine_options
from appliance.cli.recon_machine import from_option, host_option, models_option
from appliance.cli.recon_model import model_options


@click.command()
@click.argument("what", type=click.Choice(["all", "model", "engine", "machine"]), default="all")
@click.argument("reference", metavar="[REF]", required=False)
@click.option("--model", metavar="REF", help="The model to report as well, or to report the engine for.")
@from_option
@host_option
@models_option
@engine_options
@json_option
@model_options
def command(
    what: str,
    reference: str | None,
    model: str | None,
    from_file: Path | None,
    host: str | None,
    model_roots: tuple[str, ...],
    arch: str | None,
    family: str | None,
    as_json: bool,
    **model_wanted,
) -> None:
    """Report the machine, the engine and the model, side by side; or one of them.

    REF and --model take a model folder, a hub id (org/name) or a saved report. The machine is this one, one over ssh
    (--host) or a pasted text (--from); the engine is reported for its GPUs and for the model's family.
    """
    from appliance.cli import recon_all, recon_engine, recon_machine, recon_model
    from appliance.recon.children import end_all, ended_by_sigterm

    takes = {
        "all": {"model", "from", "host", "models", "arch", "family"},
        "model": {"REF", *recon_model.NAMES},
        "engine": {"model", "arch", "family"},
        "machine": {"from", "host", "models"},
    }
    given = {"REF": reference, "model": model, "from": from_file, "host": host, "models": model_roots}
    given |= {"arch": arch, "family": family, **model_wanted}
    for name, value in given.items():
        if value and name not in takes[what]:
            belongs = " or ".join(f"recon {verb}" for verb, names in takes.items() if name in names)
            shown = name if name == "REF" else f"--{name.replace('hash_files', 'hash')}"
            raise click.UsageError(f"recon {what} takes no {shown}; it belongs to {belongs}")
    gc.disable()  # 10^5 tensors, 10^6 syntax nodes, no cycles: looking for some took a third of the time; it ends soon
    if what == "model":
        if reference is None:
            raise click.UsageError("recon model needs REF: a model folder, a hub id (org/name) or a saved report")
        sys.exit(recon_model.run(reference, as_json, **model_wanted))
    machine = recon_machine.Wanted(from_file, host, model_roots)
    with ended_by_sigterm():
        try:
            if what == "machine":
                recon_machine.show(recon_machine.read(machine), as_json)
            elif what == "engine":
                recon_engine.show(recon_engine.read(arch, family, model), as_json)
            else:
                recon_all.show(recon_all.read(machine, model, arch, family), as_json)
        except KeyboardInterrupt:
            end_all()
            click.echo("interrupted", err=True)
            # threads that wait in compiled code for a hub or a driver may crash the interpreter's own way out
            os._exit(130)
        except BaseException:
            end_all()  # threads that are left behind must leave no process behind
            raise
