"""What differs between two file trees: by file and first byte, and in detail where diffoscope is installed."""

import os
import shutil
import subprocess
from pathlib import Path

LINES = 40
BLOCK = 1 << 20


def differences(first: Path, second: Path) -> list[str]:
    """Lines that name what differs between the trees, at most `LINES` of them; none if nothing does."""
    found = by_byte(first, second)
    if found and shutil.which("diffoscope"):
        found += by_diffoscope(first, second)
    more = len(found) - LINES
    return found[:LINES] + ([f"and {more} lines more"] if more > 0 else [])


def by_diffoscope(first: Path, second: Path) -> list[str]:
    """What diffoscope says of the contents; Nix knows neither times nor owners. Nothing where it fails."""
    options = ["--exclude-directory-metadata=recursive", "--text", "-"]
    done = subprocess.run(["diffoscope", *options, str(first), str(second)], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode in (0, 1) else []


def by_byte(first: Path, second: Path) -> list[str]:
    """One line a path: which of the trees has it, or where the two begin to differ."""
    found = []
    for path in sorted(paths(first) | paths(second)):
        one, two = first / path, second / path
        shown = path if path != "." else first.name
        if not os.path.lexists(one) or not os.path.lexists(two):
            found.append(f"{shown}: only in the {'second' if os.path.lexists(two) else 'first'} build")
        elif kind(one) != kind(two):
            found.append(f"{shown}: {kind(one)} in the first build, {kind(two)} in the second")
        elif one.is_symlink():
            if one.readlink() != two.readlink():
                found.append(f"{shown}: a link to {one.readlink()} and to {two.readlink()}")
        elif one.is_file() and (offset := first_difference(one, two)) is not None:
            sizes = one.stat().st_size, two.stat().st_size
            found.append(f"{shown}: differs from byte {offset:#x} on (sizes {sizes[0]} and {sizes[1]})")
    return found


def paths(tree: Path) -> set[str]:
    """All paths below `tree`, relative to it; "." for itself."""
    return {"."} | {
        os.path.relpath(os.path.join(folder, name), tree)
        for folder, folders, files in os.walk(tree)
        for name in folders + files
    }


def kind(path: Path) -> str:
    """The kinds of file that Nix tells apart."""
    if path.is_symlink():
        return "a link"
    if path.is_dir():
        return "a folder"
    return "a program" if os.access(path, os.X_OK) else "a file"


def first_difference(one: Path, two: Path) -> int | None:
    """Offset of the first byte that differs (the shorter one's end, if it is the longer one's beginning), or None."""
    position = 0
    with one.open("rb") as a, two.open("rb") as b:
        while True:
            left, right = a.read(BLOCK), b.read(BLOCK)
            if left != right:
                same = (i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y)
                return position + next(same, min(len(left), len(right)))
            if not left:
                return None
            position += len(left)
