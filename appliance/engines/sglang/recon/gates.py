"""Where the source depends on the compute capability, and what that comes to on an architecture."""

import ast
import re
from collections.abc import Iterator

from appliance.documents import ArchGate
from appliance.engines.sglang.recon.capability import UNKNOWN, Capability, Evaluator, last_name
from appliance.engines.sglang.recon.source import Placed, SourceFile, SourceTree, Unknown
from appliance.recon.engine.arch import Arch

COMMON = "srt/utils/common.py"
PLATFORM = "srt/runtime_context.py"
FOLDERS = ("srt", "kernels")
MENTIONS = re.compile(
    r"is_sm_?\d|sm_major|device_sm|_sm\d+\b|is_blackwell|is_hopper|is_ampere|device_capability|device_properties|cuda_arch",
    re.IGNORECASE,
)
CODE_LIMIT = 300
HOLDERS = ast.If | ast.IfExp | ast.While | ast.Assert | ast.comprehension | ast.Return | ast.Assign


def gates(tree: SourceTree, arch: Arch) -> list[ArchGate]:
    """All of them, by file and line. Files that are not Python for this interpreter are left out."""
    sources = list(mentioning(tree))
    evaluator = base_evaluator(tree, arch, sources)
    return [gate for source in sources for gate in gates_of(source, evaluator)]


def mentioning(tree: SourceTree) -> Iterator[SourceFile]:
    """The modules that mention architectures at all, by path."""
    for folder in FOLDERS:
        for path in sorted((tree.root / folder).rglob("*.py")):
            if MENTIONS.search(path.read_text(encoding="utf-8", errors="replace")):
                try:
                    yield tree.file(str(path.relative_to(tree.root)))
                except Unknown:
                    continue


def base_evaluator(tree: SourceTree, arch: Arch, sources: list[SourceFile] | None = None) -> Evaluator:
    """An evaluator that knows SGLang's own predicates (is_sm120_supported(), get_platform().is_sm120).

    A predicate that several modules define differently is known in none of them.
    """
    known = predicates(tree.file(COMMON), Evaluator(arch))
    found: dict[str, set] = {}
    for source in sources or []:
        if source.name.endswith(COMMON):
            continue
        for name, value in predicates(source, Evaluator(arch, predicates=known)).items():
            found.setdefault(name, set()).add(value)
    agreed = {name: values.pop() for name, values in found.items() if len(values) == 1 and name not in known}
    evaluator = Evaluator(arch, predicates=agreed | known)
    return Evaluator(arch, predicates=evaluator.predicates, platform=platform(tree, evaluator))


def predicates(source: SourceFile, evaluator: Evaluator) -> dict[str, object]:
    """Values of the functions of a module that take nothing and return a test of the compute capability."""
    found: dict[str, object] = {}
    for placed in source.placed:
        node = placed.node
        if isinstance(node, ast.Assign):
            value = partial_of_majors(node.value, evaluator.arch)
            if value is not None:
                found |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and not node.args.args:
            returned = only_return(node)
            within = Evaluator(evaluator.arch, predicates={**evaluator.predicates, **found})
            if returned is not None and within.is_gate(returned):
                value = within.value(returned)
                if isinstance(value, bool):
                    found[node.name] = value
    return found


def partial_of_majors(node: ast.AST, arch: Arch) -> bool | None:
    """Of `partial(..., device_capability_majors=[...])`, also within a decorator: whether `arch` is one of them."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_name(inner.func) == "partial":
            for keyword in inner.keywords:
                if keyword.arg == "device_capability_majors" and isinstance(keyword.value, ast.List | ast.Tuple):
                    majors = [item.value for item in keyword.value.elts if isinstance(item, ast.Constant)]
                    return arch.major in majors
    return None


def only_return(function: ast.FunctionDef) -> ast.AST | None:
    """The expression of a function that does nothing but return it, a docstring aside."""
    body = [item for item in function.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def platform(tree: SourceTree, evaluator: Evaluator) -> dict[str, object]:
    """What get_platform().NAME comes to: the table of its probes in the source, each name a predicate's."""
    found: dict[str, object] = {}
    for placed in tree.file(PLATFORM).placed:
        node = placed.node
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if not (isinstance(target, ast.Name) and target.id == "_PLATFORM_PROBES" and isinstance(node.value, ast.Dict)):
            continue
        for key, probe in zip(node.value.keys, node.value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(probe, ast.Constant):
                call = ast.Call(func=ast.Name(id=probe.value), args=[], keywords=[])
                value = evaluator.value(call)
                if value is not UNKNOWN:
                    found[key.value] = value
    return found


def gates_of(source: SourceFile, base: Evaluator) -> list[ArchGate]:
    """The gates of one module."""
    local = {**base.predicates, **predicates(source, base)}
    names: dict[str, dict[str, object]] = {}
    found: dict[tuple[int, str], ArchGate] = {}
    for placed in source.placed:
        node = placed.node
        if not isinstance(node, HOLDERS):
            continue
        evaluator = Evaluator(base.arch, local, base.platform, visible(names, placed.within))
        if isinstance(node, ast.Assign):
            bind(node, evaluator, names.setdefault(scope_of(placed, node), {}))
        for kind, expression in expressions(node):
            if evaluator.is_gate(expression) or (kind == "definition" and is_partial(expression, base.arch)):
                gate = made(source, placed, kind, node, expression, evaluator)
                found.setdefault((gate_line(expression), gate.code), gate)
    return list(found.values())


def expressions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The expressions of a node that can be gates: conditions, returned tests, and values that are kept."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        yield "condition", node.test
    elif isinstance(node, ast.comprehension):
        yield from (("condition", test) for test in node.ifs)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield "definition", node.value
    elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.IfExp | ast.Lambda | ast.Dict):
        partial = any(isinstance(inner, ast.keyword) for inner in ast.walk(node.value))
        test = isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp)
        if test or partial:
            yield "definition" if partial else "value", node.value
        elif isinstance(node.value, ast.Call) and not node.value.args:
            yield "value", node.value


def is_partial(expression: ast.AST, arch: Arch) -> bool:
    """Whether the expression makes a predicate from a list of major versions."""
    return partial_of_majors(expression, arch) is not None


def made(
    source: SourceFile, placed: Placed, kind: str, node: ast.AST, expression: ast.AST, evaluator: Evaluator
) -> ArchGate:
    """The gate as it is reported."""
    value = partial_of_majors(expression, evaluator.arch) if kind == "definition" else None
    if value is None:
        value = evaluator.value(expression)
    if isinstance(value, Capability):
        value = f"{value.major}.{value.minor}"
    shown = expression
    code = ast.unparse(node if isinstance(node, ast.Assign) else shown)
    return ArchGate(
        where=source.where(expression),
        within=placed.within or None,
        kind=kind,
        code=" ".join(code.split())[:CODE_LIMIT],
        value=value if isinstance(value, bool | int | str) else None,
    )


def gate_line(expression: ast.AST) -> int:
    """The line of the expression; one gate is reported once, whatever statements hold it."""
    return expression.lineno


def bind(node: ast.Assign, evaluator: Evaluator, names: dict[str, object]) -> None:
    """Remember names that hold the compute capability, a part of it, or a test of it."""
    value = evaluator.value(node.value) if evaluator.is_gate(node.value) or holds_capability(node.value) else UNKNOWN
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            pairs = list(zip(target.elts, value, strict=True))
        else:
            pairs = [(target, value)]
        for place, known in pairs:
            if isinstance(place, ast.Name | ast.Attribute):
                text = ast.unparse(place)
                if known is UNKNOWN or names.get(text, known) != known:
                    names.pop(text, None)
                else:
                    names[text] = known


def holds_capability(node: ast.AST) -> bool:
    """Whether the value is that of get_device_properties(), which has much besides the capability."""
    return isinstance(node, ast.Call) and last_name(node.func) == "get_device_properties"


def scope_of(placed: Placed, node: ast.Assign) -> str:
    """Where a name is visible: its definition; attributes of self in their whole class."""
    if any(isinstance(target, ast.Attribute) for target in node.targets):
        return placed.within.split(".")[0]
    return placed.within


def visible(names: dict[str, dict[str, object]], within: str) -> dict[str, object]:
    """The names that can be seen in a definition: its own, those of the ones around it, the module's."""
    parts = within.split(".") if within else []
    seen = dict(names.get("", {}))
    for end in range(1, len(parts) + 1):
        seen |= names.get(".".join(parts[:end]), {})
    return seen
