"""Bounds of a library's kernels, read from its source: numbers that are written there, nothing that is computed."""

import ast

from appliance.documents import KernelLimit
from appliance.engines.sglang.recon.family import Family, Limit, covers
from appliance.engines.sglang.recon.source import SourceTree, Unknown


def limits(family: Family, arch: str) -> list[KernelLimit]:
    """The limits that the family's table names for `arch`; one that cannot be read has a reason."""
    return [limit(wanted) for wanted in family.limits if covers(wanted.arch, arch)]


def limit(wanted: Limit, tree: SourceTree | None = None) -> KernelLimit:
    """One limit, from the installed package or from `tree`."""
    try:
        source = (tree or SourceTree.installed(wanted.package)).file(wanted.file)
        for placed in source.placed:
            if placed.within == wanted.within and assigned(placed.node) == wanted.variable:
                return KernelLimit(name=wanted.name, values=numbers(placed.node.value), where=source.where(placed.node))
        raise Unknown(f"{source.name}: {wanted.variable} is not there any more")
    except Unknown as problem:
        return KernelLimit(name=wanted.name, values=None, reason=str(problem))


def assigned(node: ast.AST) -> str | None:
    """The name that an assignment gives a value to."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return getattr(node.target, "id", None)
    return getattr(node.targets[0], "id", None) if isinstance(node, ast.Assign) else None


def numbers(node: ast.AST) -> list[int]:
    """The numbers of a literal: 64, (8, 16), {8, 16} or frozenset({8, 16}). Raises Unknown for anything else."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("frozenset", "set", "tuple") and node.args:
        node = node.args[0]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        value = None
    values = [value] if isinstance(value, int) else list(value) if isinstance(value, set | tuple | list) else []
    if not values or not all(isinstance(item, int) for item in values):
        raise Unknown(f"line {node.lineno}: `{ast.unparse(node)[:60]}` is not a number or a set of numbers")
    return sorted(values)
