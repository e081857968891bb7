"""Statements about the source that a table row rests on, each looked up in the source that is installed."""

import ast
from functools import cache
from typing import Self

from pydantic import model_validator

from appliance.documents import Part
from appliance.engines.sglang.recon.source import SourceFile, SourceTree, Unknown


class Anchor(Part):
    """One thing that must stand in the source: a `symbol`, some `code`, or an `if` with a `test`."""

    file: str
    """Path below the package: srt/environ.py."""
    within: str = ""
    """The definition that it must stand in: Class.method; "" is the module itself."""
    symbol: str | None = None
    """A class or function that must be defined: Class.method."""
    code: str | None = None
    """A statement or an expression, compared as syntax: spaces, quotes and comments do not count."""
    test: str | None = None
    """The whole condition of an `if` or `elif`, compared in the same way."""
    under: list[str] = []
    """The innermost conditions that must lead there, outermost first; "else TEST" where TEST must be false."""
    decides: bool = False
    """Whether this is the place where the kernel is chosen."""
    defines: bool = False
    """Whether this is the kernel's entry point."""

    @model_validator(mode="after")
    def one_statement(self) -> Self:
        if sum(part is not None for part in (self.symbol, self.code, self.test)) != 1:
            raise ValueError("expected exactly one of symbol, code and test")
        return self


def locate(anchor: Anchor, tree: SourceTree) -> str:
    """file:line of what the anchor states. Raises Unknown with what is not there any more."""
    source = tree.file(anchor.file)
    if anchor.symbol is not None:
        return source.where(source.definition(anchor.symbol))
    wanted = parsed(anchor.code or anchor.test)
    under = tuple(normal(test) for test in anchor.under)
    elsewhere = False
    for placed in candidates(source, anchor):
        node = placed.node
        if anchor.test is not None:
            if not isinstance(node, ast.If | ast.IfExp):
                continue
            node = node.test
        if type(node) is not type(wanted) or ast.dump(node) != ast.dump(wanted):
            continue
        if placed.under[len(placed.under) - len(under) :] == under:
            return source.where(node)
        elsewhere = True
    source.definition(anchor.within)
    place = f"{source.name}{' ' + anchor.within if anchor.within else ''}"
    what = f"the gate `{anchor.test}`" if anchor.test is not None else f"`{anchor.code}`"
    if elsewhere:
        raise Unknown(f"{place}: {what} stands under other conditions now")
    raise Unknown(f"{place}: {what} is not there any more")


def candidates(source: SourceFile, anchor: Anchor):
    """The nodes that stand directly in the anchor's definition."""
    return (placed for placed in source.placed if placed.within == anchor.within)


@cache
def parsed(code: str) -> ast.AST:
    """The node that `code` is: an expression where it is one, else a statement."""
    statement = ast.parse(code.strip()).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def normal(test: str) -> str:
    """A condition as ast writes it, with its "else " if it has one."""
    negated = test.startswith("else ")
    return ("else " if negated else "") + ast.unparse(parsed(test.removeprefix("else ") if negated else test))
