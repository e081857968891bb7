"""Import every package of this environment, each in a process of its own; exit 1 if one that should import does not.

Which modules a package has, its own RECORD says. $needsDriver names packages that are allowed to miss the GPU driver.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distributions

IMPORT_TIMEOUT_S = 300


def modules(distribution: Distribution) -> list[str]:
    """Top-level modules of a package; none for one of data or programs alone."""
    found = set()
    for file in distribution.files or ():
        top, *rest = file.parts
        if rest[-1:] == ["__init__.py"] and len(rest) == 1 and top.isidentifier():
            found.add(top)
        elif not rest and top.endswith((".py", ".so")) and not top.startswith("__"):
            found.add(top.partition(".")[0])
    return sorted(found)


def attempt(names: list[str]) -> str:
    """What goes wrong when the modules are imported; empty if nothing does."""
    code = "".join(f"import {name}\n" for name in names)
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"no end after {IMPORT_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def main() -> int:
    packages = sorted(distributions(), key=lambda distribution: distribution.name.lower())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        errors = list(pool.map(attempt, map(modules, packages)))
    excused = set(os.environ.get("needsDriver", "").split())
    failed = False
    for package, error in zip(packages, errors, strict=True):
        name = package.name.lower().replace("_", "-").replace(".", "-")
        print(f"{name} {package.version}: {error or ', '.join(modules(package)) or 'no module'}")
        if error and name not in excused:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


sys.exit(main())
