"""`appliance bench serve`"""

import sys
from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import base_port_option, json_option, state_option

COMMANDLINE = click.core.ParameterSource.COMMANDLINE
ASKING = [
    "concurrencies", "request_rates", "inputs", "outputs", "mixes", "requests_each", "repetitions", "rounds", "slo_ttft",
    "slo_tpot", "quick", "seed",
]  # fmt: skip
"""Options that say what is measured: with --resume either none of them, or those of the run that was stopped."""
QUICK = {"concurrencies": [1, 4], "inputs": [128, 512], "outputs": [32]}


@click.command()
@click.option("--model", metavar="REF", help="Model folder, or hub id whose folder is here.")
@click.option(
    "--plan",
    "plan_files",
    metavar="PLAN",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Measure this plan as it is, in place of planning; once a topology.",
)
@click.option(
    "--topology",
    "topologies",
    type=click.Choice(["pd", "replicas", "single"]),
    multiple=True,
    help="Measure this one; may be given again.  [default: all that fit]",
)
@click.option("--concurrency", "concurrencies", type=click.IntRange(1, 4096), multiple=True, help="Requests in flight.")
@click.option(
    "--request-rate",
    "request_rates",
    type=click.FloatRange(0, min_open=True),
    multiple=True,
    help="Requests a second (Poisson), in place of --concurrency.",
)
@click.option("--input", "inputs", type=click.IntRange(1), multiple=True, metavar="TOKENS", help="Of a prompt.")
@click.option(
    "--output-tokens", "outputs", type=click.IntRange(2), multiple=True, metavar="TOKENS", help="Of an answer."
)
@click.option(
    "--mix",
    "mixes",
    type=click.Choice(["tail-isolation", "multi-turn", "structured-output", "none"]),
    multiple=True,
    help="Measure this mix as well.  [default: all]",
)
@click.option("--requests-each", type=click.IntRange(1), default=4, show_default=True, help="For each one in flight.")
@click.option("--repetitions", type=click.IntRange(1, 100), default=3, show_default=True, help="Of every cell.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    help="Starts of each topology, in turns; the repetitions are spread over them.  [default: one a repetition]",
)
@click.option("--slo-ttft", type=click.FloatRange(0, min_open=True), metavar="MS", help="With --slo-tpot: goodput.")
@click.option("--slo-tpot", type=click.FloatRange(0, min_open=True), metavar="MS", help="With --slo-ttft: goodput.")
@click.option("--quick", is_flag=True, help="A small matrix: 1 and 4 in flight, 128 and 512 tokens in, 32 out.")
@click.option("--seed", type=click.IntRange(0, 2000), default=1, show_default=True, help="Of the prompts.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="The record, kept after every repetition.  [default: bench.json]"
)
@click.option("--resume", type=click.Path(path_type=Path), metavar="RECORD", help="Go on with a run that was stopped.")
@click.option("--transient", is_flag=True, help="Run as a systemd unit that outlives this login; needs root.")
@base_port_option
@state_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: str | None,
    plan_files: tuple[Path, ...],
    topologies: tuple[str, ...],
    concurrencies: tuple[int, ...],
    request_rates: tuple[float, ...],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    mixes: tuple[str, ...],
    requests_each: int,
    repetitions: int,
    rounds: int | None,
    slo_ttft: float | None,
    slo_tpot: float | None,
    quick: bool,
    seed: int,
    output: Path | None,
    resume: Path | None,
    transient: bool,
    base_port: int,
    state_dir: Path,
    as_json: bool,
) -> None:
    """Measure topologies side by side on this machine: the same model, the same run, the same prompts.

    Each topology is started, warmed up, measured and stopped, in turns. Prompts are unique, caches are emptied before
    each repetition, tokens are counted by the answers' usage, failures are counted. Exit code 1 if a request failed.
    """
    from appliance.bench.serve.matrix import MIXES, Matrix, workloads
    from appliance.bench.serve.run import new_record, require_same, run
    from appliance.cli.bench_serve_output import listening, show
    from appliance.cli.bench_serve_plans import context_of, plans_of
    from appliance.documents import Asked, BenchRecord, Slo
    from appliance.errors import InputError

    if concurrencies and request_rates:
        raise click.UsageError("--concurrency and --request-rate are two kinds of load; expected one of them")
    if (slo_ttft is None) != (slo_tpot is None):
        raise click.UsageError("--slo-ttft and --slo-tpot make one objective; expected both or none")
    if "none" in mixes and len(mixes) > 1:
        raise click.UsageError("--mix none: expected no other --mix beside it")
    if rounds is not None and rounds > repetitions:
        raise click.UsageError(f"--rounds {rounds}: expected at most the {repetitions} repetitions")
    if resume is not None and output is not None:
        raise click.UsageError("--resume goes on in its own file; expected no --output beside it")
    if resume is not None and plan_files:
        raise click.UsageError("--resume goes on with the record's own plans; expected no --plan beside it")
    if plan_files and topologies:
        raise click.UsageError("--plan says the topology; expected no --topology beside it")
    earlier = BenchRecord.read(resume) if resume is not None else None
    place = resume or output or Path("bench.json")
    if earlier is None and place.exists():
        raise InputError(f"--output {place}: exists; expected a new file, or --resume {place}")
    if transient:
        from appliance.bench.serve.transient import start

        sys.exit(start(sys.argv[1:], place, say_to=sys.stderr))
    interruptible()
    plans, found = plans_of(model, plan_files, topologies, base_port, earlier)
    given = {"concurrencies": list(concurrencies), "inputs": list(inputs), "outputs": list(outputs)}
    chosen = (QUICK if quick else {}) | {name: value for name, value in given.items() if value}
    wanted_mixes = tuple(mix.replace("-", " ").replace("multi turn", "multi-turn") for mix in mixes if mix != "none")
    matrix = Matrix(
        **chosen,
        request_rates=list(request_rates),
        mixes=wanted_mixes if mixes else MIXES,
        requests_each=requests_each,
        slo=Slo(ttft_ms=slo_ttft, tpot_ms=slo_tpot) if slo_ttft is not None else None,
    )
    asked, left_out = workloads(matrix, context_of(plans, found), found.model.vocab_size)
    if not asked:
        raise InputError(f"nothing to measure: {'; '.join(left_out)}")
    asked_for = Asked(
        topologies=list(plans), workloads=asked, repetitions=repetitions, rounds=rounds or repetitions, seed=seed
    )
    if earlier is not None and not any(context.get_parameter_source(name) == COMMANDLINE for name in ASKING):
        asked_for = earlier.asked  # nothing was asked for anew: all of it holds
    fresh = new_record(plans, found, asked_for, left_out)
    if earlier is not None:
        require_same(earlier, fresh)
    fresh.write(place) if earlier is None else None
    with listening() as listener:
        record = run(earlier or fresh, place, state_dir, listener)
    if as_json:
        click.echo(record.to_json(), nl=False)
    else:
        show(record, place)
    sys.exit(0 if all(cell.completed == cell.requests for cell in record.cells) else 1)
