"""Import every module of this environment, each package in a process of its own; exit 1 if one does not import.

Which modules a package has, its own RECORD says. $excused names modules that need not import.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distributions

IMPORT_TIMEOUT_S = 600
ATTEMPT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        words = str(error).strip().splitlines() or [""]
        print(f"{name}: {type(error).__name__}: {words[0]}", file=sys.stderr)
        print(name)
"""


def modules(distribution: Distribution) -> list[str]:
    """Top-level modules of a package; none for one of data or programs alone."""
    found = set()
    for file in distribution.files or ():
        top, *rest = file.parts
        if rest == ["__init__.py"] and top.isidentifier():
            found.add(top)
        elif not rest and top.endswith((".py", ".so")) and not top.startswith("__"):
            found.add(top.partition(".")[0])
    return sorted(found)


def failures(names: list[str]) -> list[str]:
    """Those of the modules that do not import; what they say goes to stderr."""
    if not names:
        return []
    command = [sys.executable, "-c", ATTEMPT, *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=IMPORT_TIMEOUT_S, check=False)
    reported = [name for name in names if name in done.stdout.splitlines()]
    return reported if done.returncode == 0 else reported or names


def main() -> int:
    packages = sorted(distributions(), key=lambda distribution: distribution.name.lower())
    excused = set(os.environ["excused"].split())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(failures, map(modules, packages)))
    for package, failed in zip(packages, results, strict=True):
        said = [f"{name} (not imported)" if name in failed else name for name in modules(package)]
        print(f"{package.name} {package.version}: {', '.join(said) or 'no module'}")
    wrong = [name for failed in results for name in failed if name not in excused]
    if wrong:
        print(f"not importable: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
