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
def serving(plan_file: Path) -> None:
    """Ask PLAN's front door for one completion."""
    import asyncio

    from appliance.supervisor.completion import completes

    plan = Plan.read(plan_file)
    wrong = asyncio.run(completes(plan))
    evidence = f"{plan.endpoint()}: {wrong or 'every token that was asked for'}"
    finish([Check(name="a completion through the front door", passed=wrong is None, evidence=evidence)])


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
