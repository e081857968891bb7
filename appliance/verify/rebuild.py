"""Are the bits the same again: parts built twice, once more in a second store, and compared with a record."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from appliance.documents import RebuildRecord, RebuildReport, RebuiltPart, RecordedPart
from appliance.verify.differences import differences
from appliance.verify.nix import Built, Nix

Progress = Callable[[str], None]


def check_rebuild(
    nix: Nix, names: list[str], record: RebuildRecord | None, second_store: bool, progress: Progress
) -> RebuildReport:
    """Build the parts `names`, build them again, and again in a store at another place.

    Raises ProbeIncomplete where a part cannot be built at all, InputError where there is no Nix.
    """
    version = nix.version()
    progress("building the parts")
    built = nix.build(names)
    parts = list(built.values())
    progress("building them again")
    unstable = {drv: between(nix, "", drv, parts) for drv in nix.rebuild(parts)}
    elsewhere: dict[str, list[str]] = {}
    if second_store:
        with throw_away_store() as place:
            progress("building them again in a second store")
            store = f"local?root={place}"
            nix.copy_to(store, parts)
            elsewhere = {drv: between(nix, str(place), drv, parts) for drv in nix.rebuild(parts, store)}
    return RebuildReport(
        date=now(),
        nix=version,
        parts=[
            RebuiltPart(
                name=name,
                rung=rung(name),
                derivation=part.derivation,
                path=part.path,
                nar_hash=part.nar_hash,
                nar_size=part.nar_size,
                repeats=part.derivation not in unstable,
                second_store=part.derivation not in elsewhere if second_store else None,
                record=against(record.parts.get(name) if record else None, part),
                differences=unstable.get(part.derivation) or elsewhere.get(part.derivation) or [],
            )
            for name, part in built.items()
        ],
    )


def rung(name: str) -> int:
    """The rung of the claim ladder: 2 for a wheel (bits of a download, unpacked), 3 for what is built from source."""
    return 2 if name.startswith("wheels.") else 3


def against(recorded: RecordedPart | None, part: Built) -> str:
    """How the part's content compares with the record."""
    if recorded is None:
        return "none"
    if recorded.nar_hash == part.nar_hash:
        return "same"
    return "differs" if recorded.derivation == part.derivation else "other inputs"


def between(nix: Nix, root: str, derivation: str, parts: list[Built]) -> list[str]:
    """What differs between the two builds of a derivation, in the store below `root`."""
    path = next(part.path for part in parts if part.derivation == derivation)
    with tempfile.TemporaryDirectory(prefix="rebuild-") as folder:
        one, two = Path(folder, "first"), Path(folder, "second")
        nix.copy_out(f"{root}{path}", one)
        nix.copy_out(f"{root}{path}.check", two)
        found = differences(one, two)
        make_writable(Path(folder))
    return found


@contextmanager
def throw_away_store() -> Iterator[Path]:
    """A folder for a store; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="store-") as folder:
        try:
            yield Path(folder)
        finally:
            make_writable(Path(folder))


def make_writable(tree: Path) -> None:
    """Folders of a store have no write bit, without which only root could remove them."""
    for folder, _, _ in os.walk(tree):
        os.chmod(folder, 0o700)


def as_record(report: RebuildReport) -> RebuildRecord:
    """The record of what a report found."""
    parts = {part.name: RecordedPart(derivation=part.derivation, nar_hash=part.nar_hash) for part in report.parts}
    return RebuildRecord(date=report.date, parts=dict(sorted(parts.items())))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
