"""File systems of models, caches and stores, and the models that lie there with what they lack."""

import json
import re

from appliance.documents.machine import FileSystem, ModelFolder
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.manifest import MODEL_ROOTS, SPACES
from appliance.recon.machine.source import Source

SHARD = re.compile(r"(.{1,128}?)-(\d{5})-of-(\d{5})\.(safetensors|bin)$")
POINTER_BYTES = 200
"""A weight file below this is a Git LFS pointer (about 130 bytes) or as good as none."""
MOST_FOLDERS = 500


def hub_cache(source: Source) -> str | None:
    """The hub's cache folder of this account: $HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub."""
    home = source.variable("HOME")
    return (
        source.variable("HF_HUB_CACHE")
        or (f"{source.variable('HF_HOME')}/hub" if source.variable("HF_HOME") else None)
        or (f"{home.rstrip('/')}/.cache/huggingface/hub" if home else None)
    )


def file_systems(source: Source, extra: list[str]) -> Findings:
    """The file systems of the folders that matter, by folder; those that do not exist are left out."""
    found = Findings()
    cache = hub_cache(source)
    asked = [*SPACES, *((root, "models") for root in [*extra, *MODEL_ROOTS])]
    asked += [(cache, "hub cache")] if cache else []
    mounts = mount_points(source.text("/proc/mounts"))
    systems = []
    for path, purpose in dict(asked).items():
        space = source.space(path)
        if space is None:
            continue
        point, kind = mount_of(source.link(path) or path, mounts)
        systems.append(
            FileSystem(
                path=path, purpose=purpose, mount_point=point, type=kind, size_bytes=space[0], free_bytes=space[1]
            )
        )
    found.add("file_systems", systems or None, "df, /proc/mounts", "none of the folders can be read")
    return found


def mount_points(text: str | None) -> dict[str, str]:
    """File system type by mount point; of two on one point the later, which hides the other."""
    rows = [line.split(" ") for line in (text or "").splitlines()]
    unescape = re.compile(r"\\([0-7]{3})")
    return {unescape.sub(lambda m: chr(int(m[1], 8)), row[1]): row[2] for row in rows if len(row) > 2}


def mount_of(path: str, mounts: dict[str, str]) -> tuple[str | None, str | None]:
    """Mount point and type of the file system that holds `path`, an absolute path without links."""
    parts = path.rstrip("/").split("/")
    for length in range(len(parts), 0, -1):
        point = "/".join(parts[:length]) or "/"
        if point in mounts:
            return point, mounts[point]
    return None, None


def models(source: Source, extra: list[str]) -> Findings:
    """Model folders below the roots, and the hub cache's snapshots, each with what it lacks."""
    found = Findings()
    folders: list[ModelFolder] = []
    looked = []
    for root in dict.fromkeys([*extra, *MODEL_ROOTS]):
        entries = source.sizes(root)
        if entries is None:
            continue
        looked.append(root)
        if "config.json" in entries:
            folders.append(folder(source, root))
        for name in sorted(name for name, size in entries.items() if size == -1)[:MOST_FOLDERS]:
            if "config.json" in (source.sizes(f"{root}/{name}") or {}):
                folders.append(folder(source, f"{root}/{name}"))
    cache = hub_cache(source)
    if cache and source.sizes(cache) is not None:
        looked.append(cache)
        folders += snapshots(source, cache)
    found.add("models", folders if looked else None, ", ".join(looked), "no folder of models and no hub cache")
    return found


def snapshots(source: Source, cache: str) -> list[ModelFolder]:
    """The snapshots of a hub cache; a repository with a download unfinished and no snapshot counts as well."""
    found = []
    for name in sorted(source.sizes(cache) or {})[:MOST_FOLDERS]:
        if not name.startswith("models--"):
            continue
        hub_id = name.removeprefix("models--").replace("--", "/", 1)
        blobs = source.sizes(f"{cache}/{name}/blobs") or {}
        unfinished = sum(blob.endswith(".incomplete") for blob in blobs)
        revisions = source.sizes(f"{cache}/{name}/snapshots") or {}
        for revision in sorted(revisions):
            found.append(folder(source, f"{cache}/{name}/snapshots/{revision}", hub_id, revision, unfinished))
        if not revisions:
            problems = [f"{unfinished} downloads unfinished"] if unfinished else ["no snapshot"]
            found.append(ModelFolder(path=f"{cache}/{name}", hub_id=hub_id, complete=False, problems=problems))
    return found


def folder(source: Source, path: str, hub_id=None, revision=None, unfinished: int = 0) -> ModelFolder:
    """One model folder by its file names and sizes; nothing of the weights is read."""
    sizes = source.sizes(path) or {}
    weights = {name: size for name, size in sizes.items() if name.endswith((".safetensors", ".bin", ".gguf"))}
    weights = {name: size for name, size in weights.items() if name != "training_args.bin"}
    problems = [f"{unfinished} downloads unfinished"] if unfinished else []
    problems += shards_missing(list(weights))
    lost = sorted(name for name, size in weights.items() if size is None)
    small = sorted(name for name, size in weights.items() if size is not None and size < POINTER_BYTES)
    problems += [f"{len(lost)} links to nowhere, first {lost[0]}"] if lost else []
    problems += [f"{len(small)} weight files empty or mere pointers, first {small[0]}"] if small else []
    problems += [] if weights else ["no weight file"]
    problems += [] if "config.json" in sizes else ["no config.json"]
    return ModelFolder(
        path=path,
        hub_id=hub_id,
        revision=revision,
        architecture=architecture(source.text(f"{path}/config.json")),
        weight_files=len(weights),
        weight_bytes=sum(size or 0 for size in weights.values()),
        complete=not problems,
        problems=problems,
    )


def shards_missing(names: list[str]) -> list[str]:
    """What is missing by the numbers in shards' names ("model-00002-of-00074.safetensors"), one line a series."""
    series: dict[tuple[str, str, str], set[int]] = {}
    for name in names:
        shard = SHARD.match(name)
        if shard:
            series.setdefault((shard[1], shard[3], shard[4]), set()).add(int(shard[2]))
    lines = []
    for (stem, total, ending), numbers in sorted(series.items()):
        missing = int(total) - len(numbers & set(range(1, min(int(total), 99_999) + 1)))
        if missing:
            lines.append(f"{missing} of {int(total)} shards missing ({stem}-*-of-{total}.{ending})")
    return lines


def architecture(text: str | None) -> str | None:
    """The model class in a config.json, or None."""
    try:
        names = json.loads(text or "").get("architectures")
    except (ValueError, AttributeError, RecursionError):
        return None
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
