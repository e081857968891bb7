"""`appliance verify`"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click

from appliance.cli.options import json_option, plan_argument
from appliance.documents import Check, GoldenRecord, Plan, Verification
from appliance.errors import InputError


@click.group()
def command() -> None:
    """Prove that what runs is what was planned, and that it is right."""


@command.command()
@plan_argument
@json_option
def identity(plan_file: Path, as_json: bool) -> None:
    """Compare every running worker of PLAN with the plan, argument by argument."""
    from appliance.verify.identity import check_identity

    plan = Plan.read(plan_file)
    finish(check_identity(plan), plan.identity(), as_json)


@command.command()
@plan_argument
@json_option
def serving(plan_file: Path, as_json: bool) -> None:
    """Ask PLAN's front door for one completion."""
    import asyncio

    from appliance.supervisor.completion import completes

    plan = Plan.read(plan_file)
    wrong = asyncio.run(completes(plan))
    evidence = f"{plan.endpoint()}: {wrong or 'every token that was asked for'}"
    check = Check(name="a completion through the front door", passed=wrong is None, evidence=evidence)
    finish([check], plan.identity(), as_json)


@command.command()
@plan_argument
@click.option("--record", type=click.Path(path_type=Path), help="Write the answers to this file.")
@click.option("--against", type=click.Path(path_type=Path), help="Compare the answers with this record.")
@json_option
def golden(plan_file: Path, record: Path | None, against: Path | None, as_json: bool) -> None:
    """Send the golden prompts through PLAN's front door; record the answers, or compare them with a record."""
    from appliance.cli.output import say, step
    from appliance.verify.golden import ask_all, differences

    if record is None and against is None:
        raise click.UsageError("verify golden needs --record FILE or --against FILE")
    plan = Plan.read(plan_file)
    expected = GoldenRecord.read(against) if against else None
    if expected is not None and expected.model != plan.model.served_name:
        raise InputError(f"{against}: answers of model {expected.model!r}; expected {plan.model.served_name!r}")
    with step() as current:
        answers = ask_all(
            plan.endpoint(),
            plan.model.served_name,
            on_answer=lambda n: current.update("golden prompts", f": {n} answered"),
        )
    if record is not None:
        recorded = GoldenRecord(
            date=now(),
            model=plan.model.served_name,
            engine_version=plan.engine.version,
            topology=plan.topology,
            answers=answers,
        )
        recorded.write(record)
        say(f"recorded {len(answers)} answers in {record}")
        if as_json and expected is None:
            click.echo(recorded.to_json(), nl=False)
    if expected is not None:
        wrong = differences(expected.answers, answers)
        evidence = "; ".join(wrong) or f"{len(answers)} answers equal those of {against}"
        check = Check(name="golden prompts", passed=not wrong, evidence=evidence)
        finish([check], plan.identity(), as_json)


@command.command()
@click.argument("parts", nargs=-1)
@click.option("--flake", default=".", show_default=True, help="The flake that has the parts.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Nix file that has the parts, instead of a flake.",
)
@click.option("--argstr", type=(str, str), multiple=True, metavar="NAME VALUE", help="Argument of the file's function.")
@click.option(
    "--record",
    "record_file",
    type=click.Path(path_type=Path),
    default=Path("nix/repro.json"),
    show_default=True,
    help="The bits as they were recorded.",
)
@click.option("--update", is_flag=True, help="Write the record, if the bits repeat, instead of comparing with it.")
@click.option("--second-store/--no-second-store", default=True, help="Build in a store at another place too.")
@click.option("--within", envvar="APPLIANCE_NIX_WITHIN", default="", help="Words before `nix`: tools/nix-environment.")
@json_option
def rebuild(
    parts: tuple[str, ...],
    flake: str,
    file: Path | None,
    argstr: tuple[tuple[str, str], ...],
    record_file: Path,
    update: bool,
    second_store: bool,
    within: str,
    as_json: bool,
) -> None:
    """Build PARTS (default: all of the record) twice and in a second store; compare bits, with the record too."""
    import shlex

    from appliance.cli.output import results, step
    from appliance.cli.rebuild_table import show_rebuild
    from appliance.documents import RebuildRecord
    from appliance.verify.nix import Nix
    from appliance.verify.rebuild import as_record, check_rebuild

    if argstr and file is None:
        raise click.UsageError("--argstr goes with --file")
    record = None if update and not record_file.exists() else RebuildRecord.read(record_file)
    names = list(parts) or sorted(record.parts if record else ())
    if not names:
        raise click.UsageError("there is no record yet: name the parts")
    try:
        before_nix = shlex.split(within)
    except ValueError as error:
        raise InputError(f"--within {within!r}: {error}; expected words as a shell reads them") from None
    arguments = [word for name, value in argstr for word in ("--argstr", name, value)]
    nix = Nix(source=["--file", str(file), *arguments] if file else flake, within=before_nix)
    with step() as current:
        report = check_rebuild(nix, names, None if update else record, second_store, current.update)
    if update and report.holds():
        kept = record.parts if record else {}
        new = as_record(report)
        new.model_copy(update={"parts": dict(sorted((kept | new.parts).items()))}).write(record_file)
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        show_rebuild(results, report)
    sys.exit(0 if report.holds() else 1)


def now() -> str:
    """The present, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def finish(checks: list[Check], plan_identity: str | None, as_json: bool) -> NoReturn:
    """Print the checks, or the Verification, and exit: 0 if all hold, 1 if not."""
    verification = Verification(date=now(), plan_identity=plan_identity, checks=checks)
    if as_json:
        click.echo(verification.to_json(), nl=False)
    else:
        for check in checks:
            click.echo(f"{'held  ' if check.passed else 'FAILED'}  {check.name}: {check.evidence}")
    sys.exit(0 if verification.holds() else 1)
