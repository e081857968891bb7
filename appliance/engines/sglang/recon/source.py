"""The installed source of a package as syntax trees; the package itself is not imported."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from appliance.recon.absent import Absent
from appliance.recon.engine.versions import installed

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Conditions = tuple[tuple[bool, ast.AST], ...]
"""Tests, each with whether it must hold."""


class Unknown(Absent):
    """The source is not what was expected of it: why, in words."""


@dataclass(eq=False)
class Placed:
    """A node, the definition that it stands in ("Class.method"; "" at module level) and the conditions on its way."""

    node: ast.AST
    within: str
    path: Conditions
    """The tests of the `if`s within that definition that lead to the node, outermost first; False: in its `else`."""
    passed: Conditions = ()
    """The tests before the node in that definition, one branch of which leaves for good: how they must come out."""

    @cached_property
    def under(self) -> tuple[str, ...]:
        """The path in words: "else " before a test says that it must be false."""
        return tuple(("" if holds else "else ") + ast.unparse(test) for holds, test in self.path)


class SourceFile:
    """One module: its syntax tree and all nodes with their places."""

    def __init__(self, path: Path, name: str):
        self.name = name
        """Path from the folder that holds the package, as it is shown: sglang/srt/environ.py."""
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Unknown(f"{name} is not readable in the installed source ({type(error).__name__})") from None
        try:
            self.tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Unknown(f"{name} is not Python that this interpreter reads ({error})") from None

    @cached_property
    def placed(self) -> list[Placed]:
        """Every node in the order of the text."""
        return list(walk(self.tree.body, "", ()))

    def where(self, node: ast.AST) -> str:
        """file:line"""
        return f"{self.name}:{node.lineno}"

    def definition(self, qualified_name: str) -> Scope:
        """The class or function of that name (Class.method). Raises Unknown."""
        scope: Scope = self.tree
        for name in qualified_name.split(".") if qualified_name else []:
            found = [item for item in definitions(scope.body) if item.name == name]
            if not found:
                raise Unknown(f"{self.name} has no {qualified_name} any more")
            scope = found[-1]
        return scope


class SourceTree:
    """The source of one installed package."""

    def __init__(self, root: Path):
        self.root = root
        self._files: dict[str, SourceFile] = {}

    @classmethod
    def installed(cls, package: str) -> "SourceTree":
        """The tree of an installed top-level package. Raises Unknown where it is not installed."""
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            version = installed(package)
            half = f" whole: its metadata says {version}, its source is not here" if version else ""
            raise Unknown(f"{package} is not installed{half}")
        return cls(Path(found.submodule_search_locations[0]))

    def file(self, path: str) -> SourceFile:
        """The module at `path` below the package. Raises Unknown."""
        if path not in self._files:
            if not (self.root / path).is_file():
                raise Unknown(f"{self.root.name}/{path} is not in the installed source")
            self._files[path] = SourceFile(self.root / path, f"{self.root.name}/{path}")
        return self._files[path]


def definitions(body: list[ast.stmt]) -> Iterator[DEFINITIONS]:
    """Classes and functions of a body, also within its `if`s and `try`s."""
    for statement in body:
        if isinstance(statement, DEFINITIONS):
            yield statement
            continue
        for inner in ("body", "orelse", "finalbody"):
            yield from definitions(getattr(statement, inner, []) if isinstance(statement, ast.stmt) else [])
        for handler in getattr(statement, "handlers", []):
            yield from definitions(handler.body)


def walk(nodes: list[ast.AST], within: str, path: Conditions) -> Iterator[Placed]:
    """All `nodes` and what they are made of, with their places, in the order of the text."""
    # a stack and no recursion: nested generators would pass every node up through each level
    stack = [Placed(node, within, path) for node in reversed(nodes)]
    while stack:
        placed = stack.pop()
        yield placed
        stack.extend(reversed(inner(placed)))


def inner(placed: Placed) -> list[Placed]:
    """The children of a node with their places."""
    node, found = placed.node, []
    for field, part in ast.iter_fields(node):
        within, path, passed = placed.within, placed.path, placed.passed
        if isinstance(node, DEFINITIONS) and field != "decorator_list":
            within, path, passed = (f"{within}.{node.name}" if within else node.name), (), ()
        elif isinstance(node, ast.If | ast.IfExp) and field != "test":
            path = (*path, (field == "body", node.test))
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, ast.AST):
                found.append(Placed(child, within, path, passed))
                if isinstance(child, ast.If):
                    passed = (*passed, *needed_to_pass(child))
    return found


def needed_to_pass(branch: ast.If) -> Conditions:
    """What must hold for the text after an `if` to be reached, where one of its branches leaves for good."""
    if leaves(branch.body):
        last = branch.orelse[-1] if branch.orelse else None
        return ((False, branch.test), *(needed_to_pass(last) if isinstance(last, ast.If) else ()))
    return ((True, branch.test),) if leaves(branch.orelse) else ()


def leaves(body: list[ast.stmt]) -> bool:
    """Whether a block always ends in return, continue or break. One that raises ends the program: no other way on."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Continue | ast.Break)
