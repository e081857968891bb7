"""What SGLang itself sets for a model family: arguments and variables, read from the code that sets them."""

import ast
from collections.abc import Iterator

from appliance.documents import ForcedSetting
from appliance.engines.sglang.recon.capability import UNKNOWN, Evaluator, last_name
from appliance.engines.sglang.recon.family import Family
from appliance.engines.sglang.recon.options import field_flags
from appliance.engines.sglang.recon.source import Conditions, Placed, SourceFile, SourceTree

PROVIDERS = "srt/arg_groups/model_overrides"
REGISTER = {"_register_for", "register_model_override"}
BRANCHES = "srt/arg_groups/model_hook.py"
OPPOSITE = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}


def forced(family: Family, tree: SourceTree, evaluator: Evaluator) -> list[ForcedSetting]:
    """The settings whose conditions family and architecture allow, in the order of the source.

    Three kinds of places: providers registered for the model's class, branches on it in the model hook, and the passes
    that the family's table names. Raises Unknown where one of those passes is gone.
    """
    flags = field_flags(tree)
    found: list[ForcedSetting] = []
    for source in provider_files(tree):
        for function in registered(source, family.architectures):
            found += settings_in(source, function, family, evaluator, flags)
    if family.architectures and (tree.root / BRANCHES).is_file():
        source = tree.file(BRANCHES)
        for name in sorted({placed.within for placed in source.placed if placed.within}):
            found += settings_in(source, name, family, evaluator, flags, branch_only=True)
    for place in family.passes:
        path, name = place.split(":")
        source = tree.file(path)
        source.definition(name)
        found += settings_in(source, name, family, evaluator, flags)
    return found


def provider_files(tree: SourceTree) -> list[SourceFile]:
    """The modules that hold providers of overrides."""
    return [tree.file(f"{PROVIDERS}/{path.name}") for path in sorted((tree.root / PROVIDERS).glob("*.py"))]


def registered(source: SourceFile, architectures: list[str]) -> list[str]:
    """Names of the functions that are registered for one of the model classes."""
    names = []
    for placed in source.placed:
        if isinstance(placed.node, ast.FunctionDef):
            for decorator in placed.node.decorator_list:
                if isinstance(decorator, ast.Call) and last_name(decorator.func) in REGISTER:
                    given = [item.value for item in decorator.args if isinstance(item, ast.Constant)]
                    if set(given) & set(architectures):
                        names.append(placed.node.name)
    return names


def settings_in(
    source: SourceFile,
    function: str,
    family: Family,
    evaluator: Evaluator,
    flags: dict[str, str],
    branch_only: bool = False,
) -> Iterator[ForcedSetting]:
    """The settings that a function makes; with `branch_only` those alone that a test of the model's class leads to."""
    inside = [placed for placed in source.placed if placed.within == function]
    for placed in inside:
        # in a hook for all models, what each of them passes on its way says nothing about this one unless it decides
        passed = [test for test in placed.passed if not branch_only or evaluator.value(test[1]) is not UNKNOWN]
        tests = [(holds, test, about_model(test, family)) for holds, test in (*passed, *placed.path)]
        if branch_only and not any(model is True and holds for holds, _, model in tests):
            continue
        for name, expression, where in assignments(placed.node, flags):
            value, extra = resolved(expression, inside, evaluator)
            left = open_conditions([*tests, *((h, t, about_model(t, family)) for h, t in extra)], evaluator)
            if left is None:
                continue
            unset = f"not envs.{name}.is_set()"
            yield ForcedSetting(
                name=name,
                value=value,
                expression=" ".join(ast.unparse(expression).split()),
                when=[test for test in left if test != unset],
                unless_set=unset in left,
                where=source.where(where),
            )


def conditions(placed: Placed) -> Conditions:
    """All that must hold for a node to be reached: what was passed before it, then what leads to it."""
    return (*placed.passed, *placed.path)


def about_model(test: ast.AST, family: Family) -> bool | None:
    """Whether a test of the model's class holds for this family; None where it is about something else."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and last_name(test.left) in ("model_arch", "architecture"):
        constants = [item.value for item in ast.walk(test.comparators[0]) if isinstance(item, ast.Constant)]
        inside = bool(set(constants) & set(family.architectures))
        if isinstance(test.ops[0], ast.Eq | ast.In):
            return inside
        if isinstance(test.ops[0], ast.NotEq | ast.NotIn):
            return not inside
    return None


def open_conditions(tests: list[tuple[bool, ast.AST, bool | None]], evaluator: Evaluator) -> list[str] | None:
    """Of the conditions on the way those that stay open, in words; None where one of them does not hold."""
    left: list[str] = []
    for holds, test, model in tests:
        value = evaluator.value(test) if model is None else model
        if value is UNKNOWN:
            left += conjuncts(test, holds, evaluator)
        elif bool(value) is not holds:
            return None
    return list(dict.fromkeys(left))


def conjuncts(test: ast.AST, holds: bool, evaluator: Evaluator) -> list[str]:
    """An open condition in words; of `a and b`, and of `not (a or b)`, those parts that are open."""
    if not holds:
        alternatives = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
        return [ast.unparse(negated(part)) for part in alternatives if evaluator.value(part) is UNKNOWN]
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [ast.unparse(part) for part in test.values if evaluator.value(part) is UNKNOWN]
    return [ast.unparse(test)]


def negated(test: ast.AST) -> ast.AST:
    """The opposite of a test, without a double negation."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in OPPOSITE:
        return ast.Compare(left=test.left, ops=[OPPOSITE[type(test.ops[0])]()], comparators=test.comparators)
    return ast.UnaryOp(op=ast.Not(), operand=test)


def assignments(node: ast.AST, flags: dict[str, str]) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """(flag or variable, value, place) of what a node sets: overrides["x"] = v, a dictionary of arguments,
    declare_resolution(..., x=v), envs.X.set(v)."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        field = target.slice.value if isinstance(target.slice, ast.Constant) else None
        if last_name(target.value) in ("overrides", "declared") and field in flags:
            yield flags[field], node.value, node
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in flags:
                yield flags[key.value], value, key
    elif isinstance(node, ast.Call) and last_name(node.func) == "declare_resolution":
        for keyword in node.keywords:
            if keyword.arg in flags:
                yield flags[keyword.arg], keyword.value, keyword.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "set":
        variable = node.func.value
        if isinstance(variable, ast.Attribute) and last_name(variable.value) == "envs" and node.args:
            yield variable.attr, node.args[0], node


def resolved(
    expression: ast.AST, inside: list[Placed], evaluator: Evaluator
) -> tuple[str | None, list[tuple[bool, ast.AST]]]:
    """The value of an expression as text, and the conditions under which it is that; None where it is computed.

    A local name has the one constant that is assigned to it on this architecture.
    """
    if isinstance(expression, ast.Constant):
        return str(expression.value), []
    if isinstance(expression, ast.Name):
        candidates = [
            placed
            for placed in inside
            if isinstance(placed.node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == expression.id for target in placed.node.targets)
            and isinstance(placed.node.value, ast.Constant)
            and open_conditions([(holds, test, None) for holds, test in conditions(placed)], evaluator) is not None
        ]
        if len(candidates) == 1:
            return str(candidates[0].node.value.value), list(conditions(candidates[0]))
    return None, []
