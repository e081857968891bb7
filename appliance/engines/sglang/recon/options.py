"""The server's options with their defaults, from its own parser; and where each is defined, from its source."""

import ast
import hashlib
import json
import sys
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path

from appliance.documents import ServerOption, write_whole
from appliance.engines.sglang.recon.source import SourceFile, SourceTree, Unknown
from appliance.errors import InputError
from appliance.paths import cache_directory
from appliance.recon.children import run

CHILD = "appliance.engines.sglang.recon.options_child"
FIELDS = "srt/arg_groups/fields"


def options(limit_s: float) -> list[ServerOption]:
    """Every option of the installed server. Its parser is asked in a process of its own, once a release.

    Raises Unknown where the parser cannot be made, OSError or TimeoutError where it cannot be asked.
    """
    file = record()
    table = remembered(file)
    if table is None:
        table = asked(limit_s)
        try:
            write_whole(file, json.dumps(table) + "\n")
        except InputError:
            pass  # a cache that cannot be written costs time, not facts
    where = places(SourceTree.installed("sglang"))
    return [
        ServerOption(flag=flag, default=default, choices=choices, where=where.get(flag))
        for flag, default, choices in table
    ]


def asked(limit_s: float) -> list[list]:
    """(flag, default, choices) of every option, from the server's parser."""
    code, out, err = run([sys.executable, "-W", "ignore", "-m", CHILD], limit_s)
    if code != 0:
        said = err.strip().splitlines()
        raise Unknown(f"its parser cannot be made: {said[-1] if said else f'exit code {code}'}")
    return json.loads(out.splitlines()[-1])


def record() -> Path:
    """Where the options of this very installation are kept: by version and by the list of its files' hashes."""
    sglang = distribution("sglang")
    identity = f"{sglang.read_text('RECORD')} {sys.version}".encode()
    return cache_directory() / "server-options" / f"sglang-{sglang.version}-{hashlib.sha256(identity).hexdigest()[:16]}.json"


def remembered(file: Path) -> list[list] | None:
    """What an earlier run was told; None where there was none, or its note is not readable."""
    try:
        table = json.loads(file.read_text())
        return [[str(flag), default, choices] for flag, default, choices in table]
    except (OSError, ValueError, TypeError):
        return None


@lru_cache(maxsize=8)
def places(tree: SourceTree) -> dict[str, str]:
    """file:line of the definition of each option by its flag, without importing anything."""
    found = {}
    for path in sorted((tree.root / FIELDS).glob("*.py")):
        try:
            source = tree.file(f"{FIELDS}/{path.name}")
        except Unknown:
            continue
        for placed in source.placed:
            if isinstance(placed.node, ast.AnnAssign) and isinstance(placed.node.target, ast.Name):
                found[flag_of(placed.node)] = source.where(placed.node)
    return found


def field_flags(tree: SourceTree) -> dict[str, str]:
    """The flag of each argument by its name in the source: fp8_gemm_runner_backend is --fp8-gemm-backend."""
    return {name: flag for source in field_files(tree) for name, flag in fields_of(source)}


def field_files(tree: SourceTree) -> list[SourceFile]:
    """The modules that define arguments."""
    return [tree.file(f"{FIELDS}/{path.name}") for path in sorted((tree.root / FIELDS).glob("*.py"))]


def fields_of(source: SourceFile) -> list[tuple[str, str]]:
    """(name, flag) of the arguments that a module defines."""
    nodes = [placed.node for placed in source.placed]
    return [(n.target.id, flag_of(n)) for n in nodes if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def flag_of(field: ast.AnnAssign) -> str:
    """--the-name of a field, or the cli_name that it is given."""
    for node in ast.walk(field.annotation):
        if isinstance(node, ast.keyword) and node.arg == "cli_name" and isinstance(node.value, ast.Constant):
            return str(node.value.value)
    return "--" + field.target.id.replace("_", "-")
