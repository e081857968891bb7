"""Builder of a wheel's derivation: unpack $src into $out, patch its ELF files for a system without /usr, compile it.

Of ELF files only this changes: programs get $interpreter; what needs a library that is not in the wheel and not
glibc's gets $libraries after its own run-path, which wheels rely on to find one another ($ORIGIN/../../nvidia/...).
(auto-patchelf replaces run-paths, so it does not fit here.)
"""

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

SITE_PACKAGES = "lib/python3.12/site-packages"
GLIBC = ("ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libutil.so", "libresolv.so")


def unpack(wheel: Path, out: Path) -> None:
    """The wheel's files, with the permissions it has; its *.data folders where each belongs (PEP 427)."""
    site = out / SITE_PACKAGES
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, site))
            if (entry.external_attr >> 16) & 0o100 and path.is_file():
                path.chmod(0o755)
    places = {"purelib": site, "platlib": site, "scripts": out / "bin", "data": out, "headers": out / "include"}
    for data in list(site.glob("*.data")):
        for part in data.iterdir():
            shutil.copytree(part, places[part.name], dirs_exist_ok=True)
        shutil.rmtree(data)


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def patch(path: Path, inside: set[str], interpreter: str, libraries: str) -> None:
    """Make one ELF file, of a wheel with the libraries `inside`, run on a system without /usr."""
    headers = subprocess.run(["readelf", "-dlW", path], capture_output=True, text=True, check=True).stdout
    changes: list[str] = []
    if "[Requesting program interpreter: " in headers:
        changes += ["--set-interpreter", interpreter]
    needed = re.findall(r"\(NEEDED\) .*\[(.*)\]", headers)
    if any(name not in inside and not name.startswith(GLIBC) for name in needed):
        # A DT_RPATH stays one: other than DT_RUNPATH it holds for the libraries of the library too.
        changes += ["--force-rpath"] if "(RPATH)" in headers else []
        changes += ["--add-rpath", libraries]
    if changes:
        path.chmod(path.stat().st_mode | 0o200)
        subprocess.run(["patchelf", *changes, path], check=True)


def main() -> None:
    out = Path(os.environ["out"])
    unpack(Path(os.environ["src"]), out)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    inside = {path.name for path in files}
    for path in filter(is_elf, files):
        patch(path, inside, os.environ["interpreter"], os.environ["libraries"])
    # Hashes, not times, in the bytecode; unchecked, since the store does not change. What does not compile is left.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(out / SITE_PACKAGES, quiet=2, invalidation_mode=mode, maxlevels=64)


main()
