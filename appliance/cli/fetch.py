"""`appliance fetch`"""

import re
from pathlib import Path

import click

from appliance.cli.interrupt import interruptible
from appliance.cli.options import json_option
from appliance.errors import InputError

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def rate_of(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Bytes a second of "200M"."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15})([KMG]?)B?", text.upper())
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r}; expected bytes a second, as 200M (K, M, G: powers of 1000)")
    return int(match[1]) * UNITS[match[2]]


@click.command()
@click.argument("model")
@click.option("--to", "home", required=True, type=click.Path(path_type=Path), help="The model's folder.")
@click.option("--revision", metavar="REV", help="Branch, tag or commit.  [default: the main branch]")
@click.option("--from", "source", metavar="PLACE", help="Not the hub: FOLDER or USER@HOST:FOLDER, fetched before.")
@click.option("--deep", is_flag=True, help="Hash every file, also those that look unchanged.")
@click.option("--workers", type=click.IntRange(1, 64), default=8, show_default=True, help="Files at a time.")
@click.option("--rate", metavar="BYTES", callback=rate_of, help="Most bytes a second in all: 200M.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Token for a gated model.")
@click.option("--flat", is_flag=True, help="Put the files into --to itself: one revision, replaced by the next.")
@click.option("--switch", "switch_to", is_flag=True, help="Make it the revision that --to/current leads to.")
@click.option("--prune", "prune_others", is_flag=True, help="At the end remove all revisions but this and the current.")
@click.option("--dry-run", is_flag=True, help="Say what is there, what it would take, and write nothing.")
@json_option
def command(
    model: str,
    home: Path,
    revision: str | None,
    source: str | None,
    deep: bool,
    workers: int,
    rate: int | None,
    token_file: Path | None,
    flat: bool,
    switch_to: bool,
    prune_others: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring MODEL (org/name on the hub) into a folder of its commit below --to, every file verified by its hash.

    What is there already is kept, and goes on where it broke off. With a full commit that is there whole, nobody is
    asked. The token: --token-file, else the systemd credential hf-token, else the hub client's own settings.
    """
    from appliance.cli.output import results, say, step
    from appliance.fetch.fetch import Request, fetch, outlook
    from appliance.fetch.layout import held, prune, switch
    from appliance.fetch.token import read_token
    from appliance.recon.model.hub_id import HUB_ID

    if not HUB_ID.match(model):
        raise InputError(f"{model!r}: not a hub id; expected org/name")
    if flat and (switch_to or prune_others):
        raise click.UsageError("--flat keeps one revision: --switch and --prune do not go with it")
    interruptible()
    token = read_token(token_file) if source is None else None
    request = Request(model, home, revision, flat, deep, workers, rate, token, source)
    with step() as progress:
        progress.update(f"looking at {model}")

        def on_progress(what: str, done: int, total: int) -> None:
            progress.update(f"{what} {model}", f": {100 * done // max(total, 1)} % of {total / 1e9:.2f} GB")

        document = outlook(request, on_progress) if dry_run else fetch(request, on_progress, on_damage=say)
    if switch_to and not dry_run:
        switch(home, document.revision)
    if prune_others and not dry_run:
        with held(home):
            for gone in prune(home, document.revision):
                say(f"removed {home / gone}")
    if as_json:
        click.echo(document.to_json(), nl=False)
    elif dry_run:
        results.print(
            f"{model} at {document.revision}: {document.there} of {document.size} bytes are in {document.folder}; "
            f"{document.to_fetch} to fetch, {document.to_write} to write, {document.free} free"
        )
    else:
        folder = request.folder(document.revision)
        results.print(f"{folder}: {model} at {document.revision}, {len(document.files)} files whole")
