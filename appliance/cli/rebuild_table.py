"""What `appliance verify rebuild` found, as a table."""

from rich.console import Console
from rich.table import Table

from appliance.documents import RebuildReport

LADDER = [
    "1 inputs pinned by content hash: everything; Nix refuses what has another hash",
    "2 wheels: bits of the download, unpacked the same way; not rebuilt from source",
    "3 own packages: built again here, compared byte for byte",
    "4 caches of run-time compilation: keyed by the closure; not compared here",
    "5 numbers out of the model: no bitwise promise; `appliance verify golden`",
]


def show_rebuild(console: Console, report: RebuildReport) -> None:
    """One row a part, then what differs, then the rungs of the claim ladder."""
    table = Table("part", "rung", "MB", "content", "again", "2nd store", "record", box=None, pad_edge=False)
    words = {True: "same", False: "DIFFERS", None: "-"}
    for part in report.parts:
        table.add_row(
            part.name,
            str(part.rung),
            f"{part.nar_size / 1e6:.1f}",
            part.nar_hash.removeprefix("sha256-")[:12],
            words[part.repeats],
            words[part.second_store],
            part.record.upper() if part.record == "differs" else part.record,
        )
    console.print(table)
    for part in report.parts:
        for line in part.differences:
            console.print(f"{part.name}: {line}", markup=False)
    console.print("\nrungs")
    for line in LADDER:
        console.print(f"  {line}", markup=False)
