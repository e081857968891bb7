"""What an expression of the source comes to on a given architecture: a value, or UNKNOWN."""

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.recon.engine.arch import Arch


class _Unknown:
    """The value of what neither the architecture nor an assumption decides."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


class Capability(NamedTuple):
    """torch.cuda.get_device_capability()"""

    major: int
    minor: int


PLATFORMS = {
    "is_cuda": True,
    "is_nvidia": True,
    "is_cuda_alike": True,
    "is_hip": False,
    "is_npu": False,
    "is_xpu": False,
    "is_musa": False,
    "is_mps": False,
    "is_cpu": False,
    "is_hpu": False,
    "is_sail": False,
    "is_hip_runtime": False,
    "is_musa_runtime": False,
    "is_sail_runtime": False,
}
"""Assumed: the architecture is that of an NVIDIA GPU."""

ASSUMED_CUDA = (13, 0)
"""Assumed: the toolkit that the engine's torch is pinned to, so that gates on older ones stand open."""

TEXTS = {"cfg.device": "cuda", "view.device": "cuda", "server_args.device": "cuda", "self.device": UNKNOWN}
CAPABILITY_CALLS = {"get_device_capability", "get_device_properties", "get_jit_cuda_arch"}
NUMBER_CALLS = {"get_device_sm", "get_sm_version", "get_cuda_arch"}
FACT_CALLS = (CAPABILITY_CALLS | NUMBER_CALLS) - {"get_device_properties"}
"""Calls that tell nothing but the compute capability."""
NUMBER_NAMES = {"device_sm", "sm_version"}
MAJOR_NAMES = {"device_sm_major", "sm_major", "arch_major", "capability_major", "device_major"}

COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


@dataclass
class Evaluator:
    """Evaluates expressions on `arch`. What it does not know makes UNKNOWN, and UNKNOWN stays so unless it does not
    matter (`False and UNKNOWN` is False)."""

    arch: Arch
    predicates: Mapping[str, object] = field(default_factory=dict)
    """Values of functions without arguments: is_sm120_supported()."""
    platform: Mapping[str, object] = field(default_factory=dict)
    """Values of get_platform().NAME; not those of the functions of the same name."""
    names: Mapping[str, object] = field(default_factory=dict)
    """Values of names, and of attributes by their text (self.device_sm_major)."""

    def value(self, node: ast.AST) -> object:
        """The value of an expression, or UNKNOWN. Never raises."""
        try:
            return getattr(self, f"on_{type(node).__name__.lower()}", lambda node: UNKNOWN)(node)
        except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, AttributeError, RecursionError):
            return UNKNOWN

    def is_gate(self, node: ast.AST) -> bool:
        """Whether the expression depends on the compute capability anywhere in it."""
        return any(self.is_atom(inner) for inner in ast.walk(node))

    def is_atom(self, node: ast.AST) -> bool:
        """Whether this very node is a fact about the compute capability."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            return name in FACT_CALLS or (name in self.predicates and name not in PLATFORMS)
        if isinstance(node, ast.Attribute):
            if is_platform(node.value):
                return node.attr in self.platform and node.attr not in PLATFORMS
            return node.attr in MAJOR_NAMES or node.attr in NUMBER_NAMES or dotted(node) in self.names
        return isinstance(node, ast.Name) and (node.id in self.names or node.id in MAJOR_NAMES)

    def exact(self, node: ast.AST) -> object:
        """The value where it matters itself and not only whether it is true: `x and False` may be x."""
        return UNKNOWN if any(isinstance(inner, ast.BoolOp) for inner in ast.walk(node)) else self.value(node)

    def on_constant(self, node: ast.Constant) -> object:
        return node.value

    def on_name(self, node: ast.Name) -> object:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in MAJOR_NAMES:
            return self.arch.major
        return PLATFORMS.get(node.id.lstrip("_"), UNKNOWN)

    def on_attribute(self, node: ast.Attribute) -> object:
        if is_platform(node.value):
            return self.platform.get(node.attr, PLATFORMS.get(node.attr, UNKNOWN))
        text = dotted(node)
        if text in self.names:
            return self.names[text]
        if text in TEXTS:
            return TEXTS[text]
        if text == "torch.version.cuda":
            return "{}.{}".format(*ASSUMED_CUDA)
        if text == "torch.version.hip":
            return None
        if node.attr in MAJOR_NAMES:
            return self.arch.major
        if node.attr in NUMBER_NAMES:
            return self.number()
        base = self.value(node.value)
        return getattr(base, node.attr) if isinstance(base, Capability) else UNKNOWN

    def on_call(self, node: ast.Call) -> object:
        name = last_name(node.func)
        if name in CAPABILITY_CALLS:
            return Capability(self.arch.major, self.arch.minor)
        if name in NUMBER_CALLS:
            return self.number()
        if name in ("get_cuda_version", "_jit_cuda_version"):
            return ASSUMED_CUDA
        if name in self.predicates:
            return self.predicates[name]
        if name in PLATFORMS and not node.args:
            return PLATFORMS[name]
        if name in ("tuple", "int", "bool") and len(node.args) == 1 and not node.keywords:
            known = self.value(node.args[0])
            return UNKNOWN if known is UNKNOWN else {"tuple": tuple, "int": int, "bool": bool}[name](known)
        return UNKNOWN

    def number(self) -> int:
        """get_device_sm(): 120"""
        return self.arch.major * 10 + self.arch.minor

    def on_tuple(self, node: ast.Tuple | ast.List | ast.Set) -> object:
        values = tuple(self.exact(item) for item in node.elts)
        return UNKNOWN if any(value is UNKNOWN for value in values) else values

    on_list = on_set = on_tuple

    def on_subscript(self, node: ast.Subscript) -> object:
        base, index = self.exact(node.value), self.exact(node.slice)
        return UNKNOWN if UNKNOWN in (base, index) else base[index]

    def on_binop(self, node: ast.BinOp) -> object:
        left, right = self.exact(node.left), self.exact(node.right)
        if not (isinstance(left, int) and isinstance(right, int)):
            return UNKNOWN
        return ARITHMETIC[type(node.op)](left, right)

    def on_unaryop(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) else UNKNOWN

    def on_boolop(self, node: ast.BoolOp) -> object:
        values = [self.value(item) for item in node.values]
        decisive = isinstance(node.op, ast.Or)
        for value in values:
            if value is not UNKNOWN and bool(value) is decisive:
                return decisive
        return UNKNOWN if any(value is UNKNOWN for value in values) else not decisive

    def on_compare(self, node: ast.Compare) -> object:
        values = [self.exact(item) for item in [node.left, *node.comparators]]
        results = [
            UNKNOWN if UNKNOWN in (a, b) else COMPARISONS[type(op)](a, b)
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        ]
        if any(result is False for result in results):
            return False
        return UNKNOWN if any(result is UNKNOWN for result in results) else True

    def on_ifexp(self, node: ast.IfExp) -> object:
        test = self.value(node.test)
        return UNKNOWN if test is UNKNOWN else self.value(node.body if test else node.orelse)


def last_name(function: ast.AST) -> str:
    """`get_device_capability` of torch.cuda.get_device_capability; "" where it has no name."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def dotted(node: ast.Attribute) -> str:
    """a.b.c; "" where it is not made of names alone."""
    parts = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else ""


def is_platform(node: ast.AST) -> bool:
    """Whether this is `get_platform()`."""
    return isinstance(node, ast.Call) and last_name(node.func) == "get_platform"
