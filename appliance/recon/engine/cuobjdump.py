"""cuobjdump: where it is, and which architectures it finds in a library."""

import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from appliance.recon.absent import Absent
from appliance.recon.children import run

WHEEL = "nvidia-cuda-cuobjdump"
LISTED = re.compile(r"^(ELF|PTX) file\s+\d+:\s.*?\.((?:sm|compute)_\d{2,4}[af]?)\.(?:cubin|ptx)\s*$", re.MULTILINE)
NOTHING = re.compile("does not contain device code|No (?:ELF|PTX) file found")
"""What cuobjdump says, with an exit code that is not 0, where there is none of what it was asked to list."""


class Unreadable(Absent):
    """A file that cuobjdump does not read: why, in its own words."""


def find_cuobjdump() -> Path | None:
    """cuobjdump from NVIDIA's wheel, from PATH, or the one that Triton brings along; None where there is none."""
    return next((path for path in [in_wheel(WHEEL), on_path(), in_wheel("triton")] if path), None)


def on_path() -> Path | None:
    """cuobjdump on PATH or in /usr/local/cuda."""
    found = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    return Path(found) if found else None


def in_wheel(package: str) -> Path | None:
    """The executable cuobjdump among the files of an installed distribution."""
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    paths = [Path(file.locate()) for file in listed if file.name == "cuobjdump"]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def parse_listing(text: str) -> tuple[list[str], list[str]]:
    """Architectures of machine code and of PTX in the output of --list-elf --list-ptx, each once, sorted.

    A listed name ends in .sm_90a.cubin or .sm_90.ptx; anything else is no listing and is left out.
    """
    found: dict[str, set[str]] = {"ELF": set(), "PTX": set()}
    for kind, target in LISTED.findall(text):
        found[kind].add(target)
    return tuple(sorted(found[kind], key=by_number) for kind in ("ELF", "PTX"))


def by_number(target: str) -> tuple[int, str]:
    """Sort key: sm_90a before sm_100."""
    digits = re.sub(r"\D", "", target)
    return int(digits), target


def architectures(tool: Path, library: Path, limit_s: float) -> tuple[list[str], list[str]]:
    """Architectures of machine code and PTX in `library`; both empty where it has no code for GPUs.

    Raises OSError (TimeoutError too), and Unreadable with cuobjdump's own words where it cannot read the file.
    """
    # two calls: with both options at once it lists nothing where one kind is missing
    lists = []
    for option in ("--list-elf", "--list-ptx"):
        code, out, err = run([str(tool), option, str(library)], limit_s)
        if code != 0 and not NOTHING.search(out + err):
            said = (err or out).strip().splitlines()
            raise Unreadable(said[-1] if said else f"cuobjdump ended with {code}")
        lists.append(out)
    return parse_listing("\n".join(lists))
