"""Which shipped libraries hold code for which architectures, remembered by the hash of the file."""

import hashlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from appliance.documents import Binary
from appliance.recon.absent import Absent, in_words
from appliance.recon.engine.arch import Arch, compiles_for, runs_on
from appliance.recon.engine.cuobjdump import Unreadable, architectures, find_cuobjdump
from appliance.recon.engine.notes import note, remember, remembered

LIMIT_S = 120.0
"""For one library: the largest that is known, 360 MB, takes a few seconds on a cold disk."""


class NoTool(Absent):
    """There is no cuobjdump here."""


def binaries(packages: list[str]) -> list[Binary]:
    """The libraries with GPU code of those `packages` that are installed, not judged yet. Raises NoTool."""
    tool = find_cuobjdump()
    if tool is None:
        raise NoTool("no cuobjdump: expected it in the nvidia-cuda-cuobjdump wheel, on PATH or in Triton")
    found = []
    for package in packages:
        for name, path in libraries(package):
            digest = sha256(path)
            try:
                machine_code, ptx = held(tool, path, digest)
            except (OSError, Unreadable) as error:
                why = f"unread: {in_words(error)}"
                found.append(Binary(package=package, file=name, sha256=digest, machine_code=[], ptx=[], by=why))
                continue
            if machine_code or ptx:
                found.append(Binary(package=package, file=name, sha256=digest, machine_code=machine_code, ptx=ptx))
    return found


def libraries(package: str) -> Iterator[tuple[str, Path]]:
    """Shared libraries of an installed distribution, by name within it; none where it is not installed."""
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return
    for file in listed:
        path = Path(file.locate())
        if (file.suffix == ".so" or ".so." in file.name) and path.is_file():
            yield str(file), path


def judged(binary: Binary, arch: Arch) -> Binary:
    """The same with whether it serves `arch`; one that could not be read stays as it is."""
    if not (binary.machine_code or binary.ptx):
        return binary
    cubin = next((target for target in reversed(binary.machine_code) if runs_on(target, arch)), None)
    source = next((target for target in reversed(binary.ptx) if compiles_for(target, arch)), None)
    by = cubin or (f"PTX for {source}" if source else f"neither machine code nor PTX for {arch.name}")
    return binary.model_copy(update={"serves": bool(cubin or source), "by": by})


def sha256(path: Path) -> str:
    """The file's hash, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def held(tool: Path, path: Path, digest: str) -> tuple[list[str], list[str]]:
    """Architectures of machine code and PTX in the file with this hash: from a note, or by looking, which is noted."""
    file = note("gpu-code", digest)
    found = remembered(file, tuple[list[str], list[str]])
    if found is None:
        found = architectures(tool, path, LIMIT_S)
        remember(file, found)
    return found
