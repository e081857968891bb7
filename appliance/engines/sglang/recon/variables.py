"""Variables that SGLang reads: defined in its srt/environ.py, and read somewhere else."""

import ast
import re
from functools import lru_cache
from pathlib import Path

from appliance.engines.sglang.recon.options import places
from appliance.engines.sglang.recon.source import SourceTree, Unknown

ENVIRON = "srt/environ.py"


def variable_problem(name: str, tree: SourceTree) -> str | None:
    """Why the variable or flag `name` is not one that this SGLang takes; None where it is one."""
    if name.startswith("--"):
        return None if name in places(tree) else f"the option {name} is not defined any more"
    if not name.startswith("SGLANG_"):
        return None
    try:
        defined = class_names(tree)
    except Unknown as problem:
        return str(problem)
    if name not in defined:
        return f"the variable {name} is not defined in {ENVIRON} any more"
    return None if name in read(tree.root) else f"the variable {name} is defined, but not read any more"


def class_names(tree: SourceTree) -> list[str]:
    """Names that the class Envs gives values to."""
    body = tree.file(ENVIRON).definition("Envs").body
    return [target.id for item in body if isinstance(item, ast.Assign) for target in item.targets]


@lru_cache(maxsize=8)
def read(root: Path) -> frozenset[str]:
    """All variables that are read as envs.NAME.get() or is_set() below `root`, environ.py itself left out."""
    wanted = re.compile(rb"envs\.(SGLANG_\w+)\s*\.\s*(?:get|is_set)\(|envs\.(SGLANG_\w+)\s*$", re.MULTILINE)
    found = set()
    for folder in ("srt", "kernels"):
        for path in (root / folder).rglob("*.py"):
            if path != root / ENVIRON:
                found.update(name.decode() for pair in wanted.findall(path.read_bytes()) for name in pair if name)
    return frozenset(found)
