"""`appliance bench profile`"""

import sys
from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import json_option


@click.command()
@click.argument("plan_file", metavar="[PLAN]", type=click.Path(path_type=Path), required=False)
@click.option("--worker", metavar="NAME", help="Of the plan.  [default: the first that decodes]")
@click.option("--requests", type=click.IntRange(1, 4096), default=8, show_default=True, help="That decode at once.")
@click.option("--words", type=click.IntRange(1, 1_000_000), default=64, show_default=True, help="Of a prompt.")
@click.option("--tokens", type=click.IntRange(16), default=1024, show_default=True, help="Of an answer, at most.")
@click.option("--steps", type=click.IntRange(1, 100), default=5, show_default=True, help="Decode steps to profile.")
@click.option(
    "--experts/--no-experts",
    default=None,
    help="Count experts as well.  [default: where the worker has SGLang's recorder]",
)
@click.option("--passes", type=click.IntRange(2, 900), default=64, show_default=True, help="To count experts in.")
@click.option("--ep", "ranks", type=click.IntRange(2, 1024), multiple=True, help="Ranks to place experts on.")
@click.option(
    "--from",
    "saved",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Read this instead: a trace (.json, .json.gz), a dump of the expert recorder (.pt), a saved report.",
)
@click.option("--keep", metavar="FOLDER", type=click.Path(path_type=Path), help="Keep the recorded files here.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Kernels to show.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the document to this file.")
@json_option
def command(
    plan_file: Path | None,
    worker: str | None,
    requests: int,
    words: int,
    tokens: int,
    steps: int,
    experts: bool | None,
    passes: int,
    ranks: tuple[int, ...],
    saved: tuple[Path, ...],
    keep: Path | None,
    top: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Where the time of a few decode steps of a running PLAN goes: kernels by time, those that leave the GPU empty,
    gaps, copies, communication; and how evenly a mixture of experts loads its experts.

    Sends requests of its own: profile a plan that is idle.
    """
    from appliance.bench.profile.report import from_files, report
    from appliance.bench.profile.take import Wishes, decoder, records_experts, take
    from appliance.cli import bench_profile_table
    from appliance.cli.output import results, say
    from appliance.documents import Plan

    if (plan_file is None) == (not saved):
        raise click.UsageError("expected either a PLAN that is running or --from FILE")
    if saved and (worker or experts is not None or keep):
        raise click.UsageError("--from reads what was saved; expected no --worker, --experts or --keep beside it")
    interruptible()
    if saved:
        found = from_files(list(saved), list(ranks))
    else:
        plan = Plan.read(plan_file)
        chosen = decoder(plan, worker)
        wanted = records_experts(chosen) if experts is None else experts
        if ranks and not wanted:
            raise click.UsageError("--ep places recorded experts; expected --experts beside it")
        wishes = Wishes(requests, words, tokens, steps, passes, list(ranks), wanted, keep)
        traces, load = take(plan, chosen, wishes, say)
        found = report(
            traces,
            load,
            "running worker",
            worker=chosen.name,
            plan_identity=plan.identity(),
            engine_version=plan.engine.version,
            load=wishes.words_of_load(),
        )
    if output is not None:
        found.write(output)
    if as_json:
        sys.stdout.write(found.to_json())
    else:
        bench_profile_table.show(results, found, top)
