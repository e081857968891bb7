"""Builder of an environment: $out is a virtual environment of $python whose files are links into $wheels.

Folders are real and only files are links: libraries find those of other wheels by ".." in their run-paths.
"""

import configparser
import os
import sys
from pathlib import Path

SITE_PACKAGES = "lib/python3.12/site-packages"
SCRIPT = """\
#!{python}
import sys
from {module} import {first}
sys.exit({function}())
"""


def link_tree(wheel: Path, out: Path, left_out: set[Path]) -> None:
    """Link the files of a wheel, but for scripts. Two wheels may give one file only where they agree on its bytes."""
    for folder, folders, files in os.walk(wheel):
        folders.sort()
        place = out / Path(folder).relative_to(wheel)
        if place == out / "bin":
            continue
        place.mkdir(parents=True, exist_ok=True)
        for name in sorted(files):
            source, target = Path(folder, name), place / name
            if target.relative_to(out) in left_out:
                continue
            if not target.is_symlink():
                target.symlink_to(source)
            elif source.suffix != ".pyc" and source.read_bytes() != target.read_bytes():
                sys.exit(f"{target.relative_to(out)}: differs between {target.readlink()} and {source}")


def add_scripts(wheel: Path, out: Path) -> None:
    """Scripts of the wheel, run by the environment's python: those it has as files and those it declares."""
    python = out / "bin" / "python3.12"
    for source in sorted((wheel / "bin").glob("*")):
        target = out / "bin" / source.name
        first, _, rest = source.read_bytes().partition(b"\n")
        if first.startswith(b"#!python"):
            target.write_bytes(b"#!%s\n%s" % (str(python).encode(), rest))
            target.chmod(0o755)
        else:
            target.symlink_to(source)
    for declared in sorted((wheel / SITE_PACKAGES).glob("*.dist-info/entry_points.txt")):
        entries = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        entries.optionxform = str
        entries.read_string(declared.read_text())
        for name, value in entries["console_scripts"].items() if entries.has_section("console_scripts") else ():
            module, _, function = value.partition("[")[0].strip().partition(":")
            text = SCRIPT.format(python=python, module=module, first=function.partition(".")[0], function=function)
            (out / "bin" / name).write_text(text)
            (out / "bin" / name).chmod(0o755)


def main() -> None:
    out, base = Path(os.environ["out"]), Path(os.environ["python"])
    (out / "bin").mkdir(parents=True)
    (out / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = false\n")
    for name in ("python", "python3", "python3.12"):
        (out / "bin" / name).symlink_to(base / "bin" / "python3.12")
    wheels = [Path(wheel) for wheel in os.environ["wheels"].split()]
    left_out = {Path(path) for path in os.environ["leftOut"].split()}
    for wheel in wheels:
        link_tree(wheel, out, left_out)
    for wheel in wheels:
        add_scripts(wheel, out)


main()
