"""Called by tools/refresh-nix-lock."""

import argparse
import sys
from pathlib import Path

from tools.nix_lock.changes import changes
from tools.nix_lock.closure import problems
from tools.nix_lock.package import PACKAGES, Package, read, text
from tools.nix_lock.resolve import Unresolved, resolve
from tools.nix_lock.roots import roots


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/refresh-nix-lock", description="Resolve nix/lock/requirements.in.")
    parser.add_argument("--upgrade", action="store_true", help="to the newest releases that the pins allow")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the lock is not what is asked")
    arguments = parser.parse_args()
    python = Path(sys.executable)
    locked = read() if PACKAGES.exists() else []
    try:
        if arguments.check:
            return check(python, locked)
        resolved = resolve(python, preferred=[] if arguments.upgrade else locked)
    except Unresolved as error:
        print(f"refresh-nix-lock: {error}", file=sys.stderr)
        return 3
    for line in problems(resolved, roots()):
        print(f"refresh-nix-lock: {line}; nothing was written", file=sys.stderr)
        return 1
    PACKAGES.write_text(text(resolved))
    print("\n".join(changes(locked, resolved) or ["nothing changed"]))
    return 0


def check(python: Path, locked: list[Package]) -> int:
    """Say what the lock lacks, what is not as resolved, and (no failure) which newer releases the pins allow."""
    wrong = problems(locked, roots())
    print("\n".join(f"wrong: {line}" for line in wrong), end="\n" if wrong else "")
    stale = changes(locked, resolve(python, preferred=locked))
    print("\n".join(f"stale: {line}" for line in stale), end="\n" if stale else "")
    newer = changes(locked, resolve(python, preferred=[]))
    print("\n".join(f"newer: {line}" for line in newer), end="\n" if newer else "")
    if not wrong and not stale:
        print(f"nix/lock/packages.json: {len(locked)} packages, every pin met, as resolved now")
    return 1 if wrong or stale else 0


sys.exit(main())
