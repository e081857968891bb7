"""Which shipped libraries hold code for which architectures, remembered by the hash of the file."""

import hashlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from appliance.documents import Binary
from appliance.recon.engine.arch import Arch, compiles_for, runs_on
from appliance.recon.engine.cuobjdump import architectures, find_cuobjdump
from appliance.recon.engine.notes import note, remember, remembered

LIMIT_S = 120.0
"""For one library: the largest that is known, 360 MB, takes a few seconds on a cold disk."""


class NoTool(Exception):
    """There is no cuobjdump here."""


def binaries(packages: list[str], arch: Arch | None) -> list[Binary]:
    """The libraries with GPU code of those `packages` that are installed. Raises NoTool."""
    tool = find_cuobjdump()
    if tool is None:
        raise NoTool("no cuobjdump: expected it in the nvidia-cuda-cuobjdump wheel, on PATH or in Triton")
    found = []
    for package in packages:
        for name, path in libraries(package):
            digest = sha256(path)
            try:
                machine_code, ptx = held(tool, path, digest)
            except (OSError, TimeoutError, ValueError) as error:
                why = f"unread: {error}"
                found.append(Binary(package=package, file=name, sha256=digest, machine_code=[], ptx=[], by=why))
                continue
            if machine_code or ptx:
                found.append(judged(package, name, digest, machine_code, ptx, arch))
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


def judged(package: str, name: str, digest: str, machine_code: list[str], ptx: list[str], arch: Arch | None) -> Binary:
    """A Binary, and whether it serves `arch`."""
    serves, by = None, None
    if arch is not None:
        cubin = next((target for target in reversed(machine_code) if runs_on(target, arch)), None)
        source = next((target for target in reversed(ptx) if compiles_for(target, arch)), None)
        serves = bool(cubin or source)
        by = cubin or (f"PTX for {source}" if source else f"neither machine code nor PTX for {arch.name}")
    return Binary(package=package, file=name, sha256=digest, machine_code=machine_code, ptx=ptx, serves=serves, by=by)


def sha256(path: Path) -> str:
    """The file's hash, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def held(tool: Path, path: Path, digest: str) -> tuple[list[str], list[str]]:
    """Architectures of machine code and PTX in the file with this hash: from a note, or by looking, which is noted."""
    file = note("gpu-code", digest)
    match remembered(file):
        case {"machine_code": [*machine_code], "ptx": [*ptx]}:
            return [str(target) for target in machine_code], [str(target) for target in ptx]
    machine_code, ptx = architectures(tool, path, LIMIT_S)
    remember(file, {"machine_code": machine_code, "ptx": ptx})
    return machine_code, ptx
