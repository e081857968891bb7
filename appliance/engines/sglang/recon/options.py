"""The server's options with their defaults, from its own parser; and where each is defined, from its source."""

import ast
import hashlib
import json
import sys
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path

from appliance.documents import ServerOption
from appliance.engines.sglang.recon.source import SourceFile, SourceTree, Unknown
from appliance.recon.children import run
from appliance.recon.engine.notes import note, remember, remembered

CHILD = "appliance.engines.sglang.recon.options_child"
FIELDS = "srt/arg_groups/fields"
Row = tuple[str, str | None, list[str] | None]
"""An option's flag, default and choices."""


def options(limit_s: float) -> list[ServerOption]:
    """Every option of the installed server. Its parser is asked in a process of its own, once a release.

    Raises Unknown where the parser cannot be made, OSError or TimeoutError where it cannot be asked.
    """
    tree = SourceTree.installed("sglang")
    file = record()
    table = remembered(file, list[Row])
    if table is None:
        table = asked(limit_s)
        remember(file, table)
    where = places(tree)
    return [
        ServerOption(flag=flag, default=default, choices=choices, where=where.get(flag))
        for flag, default, choices in table
    ]


def asked(limit_s: float) -> list[Row]:
    """Every option, from the server's parser."""
    code, out, err = run([sys.executable, "-W", "ignore", "-m", CHILD], limit_s)
    if code != 0:
        said = err.strip().splitlines()
        raise Unknown(f"its parser cannot be made: {said[-1] if said else f'exit code {code}'}")
    return [tuple(row) for row in json.loads(out.splitlines()[-1])]


def record() -> Path:
    """Where the options of this very installation are kept: by version and by the list of its files' hashes."""
    sglang = distribution("sglang")
    identity = f"{sglang.read_text('RECORD')} {sys.version}".encode()
    return note("server-options", f"sglang-{sglang.version}-{hashlib.sha256(identity).hexdigest()[:16]}")


@lru_cache(maxsize=8)
def places(tree: SourceTree) -> dict[str, str]:
    """file:line of the definition of each option by its flag, without importing anything."""
    return {flag_of(field): source.where(field) for source in field_files(tree) for field in fields_of(source)}


def field_flags(tree: SourceTree) -> dict[str, str]:
    """The flag of each argument by its name in the source: fp8_gemm_runner_backend is --fp8-gemm-backend."""
    return {field.target.id: flag_of(field) for source in field_files(tree) for field in fields_of(source)}


def field_files(tree: SourceTree) -> list[SourceFile]:
    """The modules that define arguments."""
    return [tree.file(f"{FIELDS}/{path.name}") for path in sorted((tree.root / FIELDS).glob("*.py"))]


def fields_of(source: SourceFile) -> list[ast.AnnAssign]:
    """The definitions of arguments in a module."""
    nodes = [placed.node for placed in source.placed]
    return [node for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]


def flag_of(field: ast.AnnAssign) -> str:
    """--the-name of a field, or the cli_name that it is given."""
    for node in ast.walk(field.annotation):
        if isinstance(node, ast.keyword) and node.arg == "cli_name" and isinstance(node.value, ast.Constant):
            return str(node.value.value)
    return "--" + field.target.id.replace("_", "-")
