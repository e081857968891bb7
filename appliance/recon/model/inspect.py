"""One report from whatever names a checkpoint: a folder, a hub id, a saved report."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from appliance.documents import ModelReport
from appliance.documents.model import ModelFile
from appliance.errors import InputError
from appliance.recon.model import hashes, integrity, ranks
from appliance.recon.model.claims import claims_in, reconcile
from appliance.recon.model.folder import read_folder
from appliance.recon.model.hub_id import HUB_ID, split_revision
from appliance.recon.model.report import report_on

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Wanted:
    """What is asked of a report besides the facts."""

    revision: str | None = None
    claim: str | None = None
    """Text to hold against what is there; None: the checkpoint's own name."""
    layouts: tuple[tuple[int, int], ...] | None = None
    """(tp, ep) to report the weights of a rank for; None: the usual ones."""
    hash_files: bool = False
    against: str | None = None
    """What hashes are compared with: a hub id or a saved report; None: what the download recorded."""


def inspect(reference: str, wanted: Wanted, on_progress: Progress = lambda what, done, total: None) -> ModelReport:
    """Report the checkpoint that `reference` names.

    Raises InputError when nothing can be read there, ProbeIncomplete when the hub could not be asked to the end.
    """
    path = Path(reference)
    if path.is_file():
        return saved(path, wanted)
    if path.is_dir():
        checkpoint = read_folder(path)
        report = report_on(checkpoint, wanted.claim, wanted.layouts or ranks.USUAL)
        return with_hashes(report, path, wanted, on_progress) if wanted.hash_files else report
    repo, at = split_revision(reference)
    if HUB_ID.match(repo) is None:
        raise InputError(f"{reference}: no such file or folder, and no hub id; expected a model folder or org/name")
    if wanted.hash_files:
        raise InputError(f"{reference}: not a folder here; --hash reads the files of a local folder")
    from appliance.recon.model.hub import read_hub

    checkpoint = read_hub(repo, wanted.revision or at, lambda done, total: on_progress("reading headers", done, total))
    return report_on(checkpoint, wanted.claim, wanted.layouts or ranks.USUAL)


def saved(path: Path, wanted: Wanted) -> ModelReport:
    """A saved report, held against another claim if one is given. Raises InputError."""
    if path.name == "config.json":
        raise InputError(f"{path}: a configuration; expected its folder, a hub id, or a saved ModelReport")
    report = ModelReport.read(path)
    if wanted.hash_files:
        raise InputError(f"{path}: a saved report; --hash reads the files of a local folder")
    if wanted.layouts is not None:
        known = {(rank.tp, rank.ep): rank for rank in report.ranks}
        absent = [layout for layout in wanted.layouts if layout not in known]
        if absent:
            tp, ep = absent[0]
            raise InputError(f"{path}: a saved report has no ranks for tp {tp}, ep {ep}; expected the model itself")
        report = report.model_copy(update={"ranks": [known[layout] for layout in wanted.layouts]})
    if wanted.claim is not None:
        bases = {entry.basis for entry in report.quantisation}
        basis = "tensors" if "tensors" in bases else "configuration"
        entries = [entry for entry in report.quantisation if entry.basis == basis]
        report = report.model_copy(update={"claims": reconcile(claims_in(wanted.claim), entries, report.mtp)})
    return report


def with_hashes(report: ModelReport, folder: Path, wanted: Wanted, on_progress: Progress) -> ModelReport:
    """The report with the sha256 of every weight file, compared with what each should be."""
    names = [file.name for file in report.files]
    expected, whose = expectation(folder, names, wanted)
    files = hashes.hash_files(folder, names, lambda done, total: on_progress("hashing", done, total))
    found = report.integrity
    assert found is not None  # there are weight files: expectation() raises otherwise
    known = {(problem.kind, problem.file) for problem in found.problems}
    fresh = [
        problem for problem in integrity.against(files, expected, whose) if (problem.kind, problem.file) not in known
    ]
    compared = sum(file.name in expected for file in files)
    return report.model_copy(
        update={
            "files": files,
            "integrity": found.model_copy(update={"hashed": compared, "problems": [*found.problems, *fresh]}),
            "sources": report.sources | {"files": f"file system; sha256 compared with {whose}"},
        }
    )


def expectation(folder: Path, names: Iterable[str], wanted: Wanted) -> tuple[dict[str, ModelFile], str]:
    """(expected files by name, whose word that is). Raises InputError when nothing tells what the hashes should be."""
    names = list(names)
    if not names:
        raise InputError(f"{folder}: no weight files; expected some to hash")
    if wanted.against is None:
        known = hashes.recorded(folder, names)
        if not known:
            raise InputError(
                f"{folder}: nothing here tells the files' hashes; expected --against org/name or a saved report"
            )
        return {
            name: ModelFile(name=name, size=hashes.size_of(folder / name), sha256=sha) for name, sha in known.items()
        }, ("the download's record")
    if Path(wanted.against).is_file():
        report = ModelReport.read(Path(wanted.against))
        expected = {file.name: file for file in report.files if file.sha256}
        whose = wanted.against
    else:
        expected, whose = from_hub(wanted.against, wanted.revision)
    if not expected:
        raise InputError(f"{wanted.against}: no sha256 of a weight file; expected a report or repository that has them")
    return expected, whose


def from_hub(reference: str, revision: str | None) -> tuple[dict[str, ModelFile], str]:
    """Sizes and hashes of the weight files of a hub repository."""
    repo, at = split_revision(reference)
    if HUB_ID.match(repo) is None:
        raise InputError(f"{reference}: no such file, and no hub id; expected a saved report or org/name")
    from appliance.recon.model.hub import hub_hashes

    listed = hub_hashes(repo, revision or at)
    weights = {name: entry for name, entry in listed.items() if name.endswith(".safetensors") and "/" not in name}
    return {name: ModelFile(name=name, size=size, sha256=sha) for name, (size, sha) in weights.items()}, repo
