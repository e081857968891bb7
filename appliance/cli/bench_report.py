"""`appliance bench report`"""

import json
from pathlib import Path

import click


@click.command()
@click.argument("files", metavar="FILE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, help="The page."
)
@click.option("--svg", "folder", type=click.Path(path_type=Path), help="Write each picture into this folder as well.")
def command(files: tuple[Path, ...], output: Path, folder: Path | None) -> None:
    """Make one HTML page of records: curves, matrix, tail isolation, shares of limits, kernels, provenance.

    FILE is what `bench serve`, `bench kernels` or `bench profile` wrote; of several runs each is compared with the
    first. The page opens offline.
    """
    from appliance.bench.report.page import pictures, report
    from appliance.cli.output import say
    from appliance.documents import BenchRecord, KernelBench, ProfileReport, write_whole
    from appliance.errors import InputError

    if output.suffix not in (".html", ".htm"):
        raise InputError(f"--output {output}: expected a file that ends with .html")
    found: dict[str, list] = {}
    for path in files:
        kind = kind_of(path)
        readers = {document.KIND: document for document in (BenchRecord, KernelBench, ProfileReport)}
        if kind not in readers:
            raise InputError(f"{path}: kind is {kind!r}; expected {', '.join(readers)}")
        found.setdefault(kind, []).append(readers[kind].read(path))
    records = found.get("BenchRecord", [])
    write_whole(output, report(records, found.get("KernelBench", []), found.get("ProfileReport", [])))
    for name, text in pictures(records).items() if folder else ():
        write_whole(folder / name, text)
    say(f"report: {output}" + (f", pictures in {folder}" if folder else ""))


def kind_of(path: Path) -> str | None:
    """What the document at `path` says it is; its own reader says what is wrong with the rest. Raises InputError."""
    from appliance.documents import BenchRecord

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        BenchRecord.read(path)  # says it in one line
        raise
    return data.get("kind") if isinstance(data, dict) else None
