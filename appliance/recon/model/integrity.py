"""Files of a checkpoint against its index and their own headers.

Kinds of problem: missing, unreadable, zero-length, lfs-pointer, truncated, longer, not-safetensors, inconsistent
(lengths that do not fit the shapes, holes), extra (a weight file that the index does not name), duplicate (a tensor in
two files), absent-tensor, misplaced-tensor, unindexed-tensor, changed (another sha256 or size).
"""

from collections.abc import Iterable

from appliance.documents.model import Integrity, ModelFile, Problem
from appliance.recon.model.checkpoint import INDEX, Checkpoint, Shard


def integrity_of(checkpoint: Checkpoint) -> Integrity:
    """What does not hold of the checkpoint's files, by file."""
    problems = [
        Problem(kind="missing", file=name, words=f"{INDEX} names it, it is not there") for name in checkpoint.missing
    ]
    problems += [
        Problem(kind=shard.fault[0], file=shard.name, words=shard.fault[1])
        for shard in checkpoint.shards
        if shard.fault
    ]
    problems += tensor_problems(checkpoint)
    return Integrity(
        files=len(checkpoint.shards),
        bytes=sum(shard.size for shard in checkpoint.shards),
        problems=sorted(problems, key=lambda problem: (problem.file, problem.kind)),
    )


def tensor_problems(checkpoint: Checkpoint) -> list[Problem]:
    """Tensors in two files, and tensors that index and headers place differently."""
    problems = []
    home: dict[str, str] = {}
    for shard in checkpoint.shards:
        twice = [name for name in shard.tensors or () if name in home and belongs(shard.name, checkpoint)]
        if twice:
            words = summary(twice, f"also in {home[twice[0]]}")
            problems.append(Problem(kind="duplicate", file=shard.name, words=words))
        if belongs(shard.name, checkpoint):
            for name in shard.tensors or ():
                home.setdefault(name, shard.name)
    weight_map = checkpoint.weight_map
    if weight_map is None:
        return problems
    readable = {shard.name for shard in checkpoint.shards if shard.tensors is not None}
    absent: dict[str, list[str]] = {}
    misplaced: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        there = home.get(name)
        if there is None and file in readable:
            absent.setdefault(file, []).append(name)
        elif there is not None and there != file and file in readable:
            misplaced.setdefault(file, []).append(name)
    for file, names in absent.items():
        problems.append(Problem(kind="absent-tensor", file=file, words=summary(names, f"in {INDEX}, not in the file")))
    for file, names in misplaced.items():
        words = summary(names, f"in {home[names[0]]} instead")
        problems.append(Problem(kind="misplaced-tensor", file=file, words=words))
    return problems + unindexed(checkpoint.shards, weight_map)


def unindexed(shards: Iterable[Shard], weight_map: dict[str, str]) -> list[Problem]:
    """Files that the index does not name, and tensors of named files that it does not."""
    problems = []
    named = set(weight_map.values())
    for shard in shards:
        if shard.name not in named:
            words = f"{INDEX} does not name it: engines that read every *.safetensors load it as well"
            problems.append(Problem(kind="extra", file=shard.name, words=words))
            continue
        names = [name for name in shard.tensors or () if name not in weight_map]
        if names:
            words = summary(names, f"in the file, not in {INDEX}")
            problems.append(Problem(kind="unindexed-tensor", file=shard.name, words=words))
    return problems


def belongs(name: str, checkpoint: Checkpoint) -> bool:
    """Whether a file is one of the checkpoint's, not an extra one beside it."""
    return checkpoint.named is None or name in checkpoint.named


def summary(names: list[str], what: str) -> str:
    """ "a.weight (and 3 more): in the file, not in the index"."""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]}{more}: {what}"


def against(files: Iterable[ModelFile], expected: dict[str, ModelFile], whose: str) -> list[Problem]:
    """Files whose size or sha256 is not what is `expected` of a file of that name, and files that are not there."""
    problems = []
    there = {file.name: file for file in files}
    for name, wanted in sorted(expected.items()):
        file = there.get(name)
        if file is None:
            problems.append(Problem(kind="missing", file=name, words=f"{whose} has it, it is not there"))
        elif file.size != wanted.size:
            words = f"{file.size} bytes, {whose} has {wanted.size}"
            problems.append(Problem(kind="changed", file=name, words=words))
        elif file.sha256 and wanted.sha256 and file.sha256 != wanted.sha256:
            words = f"sha256 {file.sha256}, {whose} has {wanted.sha256}"
            problems.append(Problem(kind="changed", file=name, words=words))
    return problems
