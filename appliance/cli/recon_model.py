"""`appliance recon model REF`: its options, and the run."""

from collections.abc import Callable

import click

OPTIONS = [
    click.option("--revision", metavar="REV", help="model: branch, tag or commit on the hub."),
    click.option("--tp", type=click.IntRange(min=1), help="model: weights of a rank for this tensor parallelism."),
    click.option("--ep", type=click.IntRange(min=1), help="model: ranks that hold whole experts; it divides --tp."),
    click.option("--claim", metavar="TEXT", help="model: hold this against what is there.  [default: its name]"),
    click.option("--hash", "hash_files", is_flag=True, help="model: sha256 of the weight files of a local folder."),
    click.option("--against", metavar="REF", help="model: hub id or saved report whose hashes --hash compares with."),
]


NAMES = ["revision", "tp", "ep", "claim", "hash_files", "against"]


def model_options(command: Callable) -> Callable:
    """Give a command the options of `recon model`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def run(
    reference: str,
    as_json: bool,
    revision: str | None,
    tp: int | None,
    ep: int | None,
    claim: str | None,
    hash_files: bool,
    against: str | None,
) -> int:
    """Report the model that `reference` names. Returns the exit code: 1 where its files do not hold together."""
    from appliance.cli.output import results, step
    from appliance.cli.recon_model_output import show_model
    from appliance.recon.model.inspect import Wanted, inspect

    if against is not None and not hash_files:
        raise click.UsageError("--against says what --hash compares with; expected --hash as well")
    layouts = ((tp or ep, ep or 1),) if tp or ep else None
    wanted = Wanted(revision, claim, layouts, hash_files, against)
    with step() as progress:
        progress.update(f"looking at {reference}")

        def on_progress(what: str, done: int, total: int) -> None:
            progress.update(f"{what} of {reference}", f": {100 * done // max(total, 1)} %")

        report = inspect(reference, wanted, on_progress)
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        show_model(results, report)
    return 1 if report.integrity is not None and report.integrity.problems else 0
