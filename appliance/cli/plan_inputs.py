"""The reports that `appliance plan` plans from: saved ones, and for what is not given, this machine's own."""

import re
import sys
from pathlib import Path

import click

from appliance import cpu_list
from appliance.documents import EngineReport, Recon
from appliance.errors import InputError

GPU_LIST = re.compile(r"\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*")


def read(from_file: Path | None, machine_file: Path | None, model: str | None, engine_file: Path | None) -> Recon:
    """Machine, model and engine reports, all there. Raises InputError."""
    from appliance.cli.output import step
    from appliance.recon.model.inspect import Wanted, inspect

    found = Recon() if from_file is None else saved(from_file)
    given = {"--machine": (machine_file, found.machine), "--model": (model, found.model)}
    given["--engine"] = (engine_file, found.engine)
    for option, (own, within) in given.items():
        if own is not None and within is not None:
            raise click.UsageError(f"{option} and --from both have that report; expected one of them")
    if model is None and found.model is None:
        why = found.problems.get("model")
        raise InputError(f"no model to plan for{f' ({why})' if why else ''}; expected --model REF")
    changes = {}
    with step() as shown:
        if found.model is None:
            shown.update(f"looking at {model}")
            changes["model"] = inspect(model, Wanted())
        if found.machine is None:
            changes["machine"] = machine(machine_file, shown)
        if found.engine is None:
            changes["engine"] = engine(engine_file)
    return found.model_copy(update=changes)


def saved(path: Path) -> Recon:
    """The Recon document at `path`; "-" is stdin."""
    if str(path) != "-":
        return Recon.read(path)
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InputError("stdin: not UTF-8 text; expected a Recon document (JSON)") from None
    if not text.strip():
        raise InputError("stdin: empty; expected a Recon document (`appliance recon --json`)")
    return Recon.parse(text, where="stdin")


def machine(path: Path | None, shown):
    """The machine's report from `path`, or this machine's."""
    from appliance.cli import recon_machine

    return recon_machine.report(shown, recon_machine.Wanted(path, None, ()))


def engine(path: Path | None) -> EngineReport:
    """The engine's report from `path`, or the quick one of what is installed here."""
    from appliance.recon.engine import engine_report

    return engine_report() if path is None else EngineReport.read(path)


def indices(text: str) -> list[int]:
    """The numbers of a list such as 0-3,6. Raises InputError."""
    found = sorted(cpu_list.parse(text)) if GPU_LIST.fullmatch(text) else []
    if not found:
        raise InputError(f"--gpus {text!r}: not a list of GPUs; expected one such as 0-3,6")
    return found
