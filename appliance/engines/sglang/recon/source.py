"""The installed source of a package as syntax trees; the package itself is not imported."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Unknown(Exception):
    """The source is not what was expected of it: why, in words."""


@dataclass(eq=False)
class Placed:
    """A node, the definition that it stands in ("Class.method"; "" at module level) and the conditions on its way."""

    node: ast.AST
    within: str
    path: tuple[tuple[bool, ast.AST], ...]
    """The tests of the `if`s within that definition that lead to the node, outermost first; False: in its `else`."""

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
            raise Unknown(f"{package} is not installed")
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


def walk(nodes: list[ast.AST], within: str, path: tuple[tuple[bool, ast.AST], ...]) -> Iterator[Placed]:
    """All `nodes` and what they are made of, with their places, in the order of the text."""
    # a stack and no recursion: nested generators would pass every node up through each level
    stack = [Placed(node, within, path) for node in reversed(nodes)]
    while stack:
        placed = stack.pop()
        yield placed
        stack.extend(reversed(inner(placed)))


def inner(placed: Placed) -> list[Placed]:
    """The children of a node with their places."""
    node, within, path = placed.node, placed.within, placed.path
    if isinstance(node, DEFINITIONS):
        name = f"{within}.{node.name}" if within else node.name
        outside = set(node.decorator_list)
        return [
            Placed(child, within, path) if child in outside else Placed(child, name, ())
            for child in ast.iter_child_nodes(node)
        ]
    if isinstance(node, ast.If | ast.IfExp):
        branches = [(True, as_list(node.body)), (False, as_list(node.orelse))]
        found = [Placed(node.test, within, path)]
        for holds, branch in branches:
            found += [Placed(child, within, (*path, (holds, node.test))) for child in branch]
        return found
    return [Placed(child, within, path) for child in ast.iter_child_nodes(node)]


def as_list(part: ast.AST | list) -> list:
    """The branches of `if` statements are lists, those of `if` expressions are not."""
    return part if isinstance(part, list) else [part]
