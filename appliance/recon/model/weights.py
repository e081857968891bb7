"""Modules, formats and bytes: the weights of a checkpoint summed up by component, found and declared."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from appliance.documents.model import Component
from appliance.recon.model.configuration import Shape
from appliance.recon.model.declared import Declared
from appliance.recon.model.names import Place, Places, Sharding, split_role
from appliance.recon.model.schemes import UNKNOWN, Scheme, scheme_of, stored_bits
from appliance.recon.model.skeleton import Module
from appliance.recon.safetensors_header import TensorInfo

ORDER = (
    "routed_experts",
    "shared_experts",
    "dense_mlp",
    "attention",
    "linear_attention",
    "mamba",
    "indexer",
    "compressor",
    "router",
    "embedding",
    "head",
    "mtp",
    "vision",
    "engram",
)
"""Components in the order of a report; "other" (norms, biases, tables) is counted but has no entry."""
INTEGERS = ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL")


@dataclass
class Sum:
    """What is alike, added up."""

    modules: int = 0
    weights: int = 0
    bytes: int = 0
    example: str | None = None

    def add(self, name: str, weights: int, size: int, count: int = 1) -> None:
        self.modules += count
        self.weights += weights
        self.bytes += size
        self.example = self.example or name


@dataclass
class Weights:
    """A checkpoint's weights: sums by (component, scheme), bytes by how engines split them, MTP layers."""

    found: dict[tuple[str, Scheme], Sum] = field(default_factory=dict)
    declared: dict[tuple[str, Scheme], Sum] = field(default_factory=dict)
    split: dict[Sharding, int] = field(default_factory=lambda: defaultdict(int))
    mtp_tensors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    expert_weights: int = 0
    """Of the routed experts of the main model."""
    idle_weights: int = 0
    """Weights that take no part in the main model's pass: MTP, vision, lookup tables beside the embedding."""
    kv_scales: int = 0
    differing: dict[tuple[str, Scheme, Scheme], str] = field(default_factory=dict)
    """(component, found, declared) where the two differ, with a module as an example."""

    @property
    def parameters(self) -> int:
        return sum(entry.weights for entry in (self.found or self.declared).values())

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in (self.found or self.declared).values())


def of_tensors(headers: Iterable[dict[str, TensorInfo]], shape: Shape, declaration: Declared) -> Weights:
    """Sum up the tensors of all files, module by module. Never raises."""
    weights, places = Weights(), Places(shape)
    widths = frozenset(value for value in shape.text.values() if type(value) is int and value >= 32)
    modules: dict[str, dict[str, TensorInfo]] = {}
    for tensors in headers:
        for name, tensor in tensors.items():
            module, role = split_role(name)
            modules.setdefault(module, {})[role] = tensor
    schemes: dict[tuple, tuple] = {}
    declarations: dict[tuple[str, str], Scheme] = {}
    collapse = not declaration.ignore.names_single_experts
    for module, tensors in modules.items():
        place = places.of(module)
        signature = tuple((role, tensor.dtype, tensor.shape) for role, tensor in tensors.items())
        known = schemes.get(signature)
        if known is None:
            known = schemes[signature] = (*scheme_of(tensors, widths), is_matrix(tensors))
        scheme, count, matrix = known
        size = sum(tensor.end - tensor.begin for tensor in tensors.values())
        if place.mtp:
            weights.mtp_tensors[place.mtp] += len(tensors)
        weights.kv_scales += "kv_scale" in tensors
        weights.split[place.sharding] += size
        tally(weights, place, count)
        if not matrix:
            add(weights.found, "other", scheme, module, count, size)
            continue
        component = place.component
        before, experts, after = module.partition(".experts.")
        key = (before + experts, after.partition(".")[2]) if collapse and experts else (module, "")
        said = declarations.get(key)
        if said is None:
            said = declarations[key] = declaration.scheme_of(module, place)
        add(weights.found, component, completed(scheme, said), module, count, size)
        add(weights.declared, component, said, module, count, size)
        if unlike(scheme, said):
            weights.differing.setdefault((component, scheme, said), module)
    return weights


def of_skeleton(modules: list[Module], shape: Shape, declaration: Declared) -> Weights:
    """Sum up the modules that a configuration implies, in the formats that it declares."""
    weights, places = Weights(), Places(shape)
    for module in modules:
        place = places.of(module.name)
        scheme = declaration.scheme_of(module.name, place)
        bits = stored_bits(scheme) or 16  # unknown: as large as it may be
        size = int(module.weights * bits / 8)
        weights.split[place.sharding] += size
        add(weights.declared, place.component, scheme, module.name, module.weights, size, module.count)
        tally(weights, place, module.weights)
    return weights


def add(
    sums: dict[tuple[str, Scheme], Sum], component: str, scheme: Scheme, name: str, weights: int, size: int, count=1
) -> None:
    """Add `count` modules to their sum."""
    entry = sums.get((component, scheme))
    if entry is None:
        entry = sums[component, scheme] = Sum()
    entry.add(name, weights, size, count)


def tally(weights: Weights, place: Place, count: int) -> None:
    """Count weights that a token of the main model does not pass, or passes in part."""
    if place.component in ("mtp", "vision", "engram"):
        weights.idle_weights += count
    elif place.component == "routed_experts":
        weights.expert_weights += count


def is_matrix(tensors: dict[str, TensorInfo]) -> bool:
    """Whether the module multiplies: its weight has two dimensions or more, and is no table of integers."""
    weight = tensors.get("weight") or tensors.get("packed") or tensors.get("qweight")
    if weight is None or len(weight.shape) < 2 or prod(weight.shape) == 0:
        return False
    return "scale" in tensors or weight.dtype not in INTEGERS


def completed(found: Scheme, said: Scheme) -> Scheme:
    """A found scheme with what tensors cannot tell, activations and writer, from a declaration that agrees with it."""
    if found.format != said.format:
        return found
    return found._replace(
        activations=said.activations if found.activations is None else found.activations,
        packing=found.packing or said.packing,
    )


def unlike(found: Scheme, said: Scheme) -> bool:
    """Whether a found scheme contradicts a declared one, as far as both say something."""
    if UNKNOWN.format in (found.format, said.format):
        return False
    if found.format != said.format:
        return {found.format, said.format} not in ({"bf16", "fp32"}, {"fp16", "fp32"}, {"bf16", "fp16"})
    return None not in (found.group, said.group) and found.group != said.group


def components(sums: dict[tuple[str, Scheme], Sum], basis: str) -> list[Component]:
    """Document entries of the sums, the larger formats of a component first."""
    entries = [
        Component(
            component=component,
            basis=basis,
            format=scheme.format,
            bits=scheme.bits,
            group=scheme.group,
            activations=scheme.activations,
            packing=scheme.packing,
            modules=entry.modules,
            parameters=entry.weights,
            bytes=entry.bytes,
            example=entry.example,
        )
        for (component, scheme), entry in sums.items()
        if component in ORDER
    ]
    return sorted(entries, key=lambda entry: (ORDER.index(entry.component), -entry.parameters))
