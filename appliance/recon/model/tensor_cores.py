"""What the tensor cores of an architecture multiply, and what follows for each format of weights.

A table of facts with their sources; a format or an architecture that is not in it is left out, never guessed.
"""

from typing import NamedTuple

from appliance.documents.model import Component, TensorCoreUse

ARCHITECTURES = ("sm_90", "sm_100", "sm_120")
OPERANDS: dict[str, tuple[frozenset[str], str]] = {
    "sm_90": (
        frozenset({"fp16", "bf16", "tf32", "fp8", "int8"}),
        "PTX ISA, wgmma.mma_async: .f16 .bf16 .tf32 .e4m3 .e5m2 .u8 .s8 (sm_90a)",
    ),
    "sm_100": (
        frozenset({"fp16", "bf16", "tf32", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4"}),
        "PTX ISA, tcgen05.mma: .kind::f16 tf32 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4 (sm_100a)",
    ),
    "sm_120": (
        frozenset({"fp16", "bf16", "tf32", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4"}),
        "PTX ISA, mma.sync: .f16 .bf16 .tf32 .s8, with .kind::f8f6f4 mxf8f6f4 mxf4 mxf4nvf4 (sm_120a); no tcgen05",
    ),
}
"""Types that the tensor cores take on both sides of a product."""
MIXED = {"sm_100": "mxf8f6f4", "sm_120": "mxf8f6f4"}
"""Instruction kind that multiplies 4-bit floats by float8 (at the rate of float8), where there is one."""


class Verdict(NamedTuple):
    native: bool
    words: str


def uses(components: list[Component], architectures: tuple[str, ...] = ARCHITECTURES) -> list[TensorCoreUse]:
    """For each architecture and each format of the weights that multiply: what the tensor cores do with it."""
    by_format: dict[tuple[str, str | None], list[str]] = {}
    for entry in components:
        if entry.component not in ("embedding", "engram", "router") and entry.format != "unknown":
            names = by_format.setdefault((entry.format, entry.activations), [])
            if entry.component not in names:
                names.append(entry.component)
    return [
        TensorCoreUse(
            architecture=architecture,
            format=form if activations is None else f"{form}, activations {activations}",
            components=names,
            native=verdict.native,
            words=verdict.words,
            source=OPERANDS[architecture][1],
        )
        for architecture in architectures
        for (form, activations), names in by_format.items()
        for verdict in [judge(form, activations, architecture)]
    ]


def judge(form: str, activations: str | None, architecture: str) -> Verdict:
    """Whether weights of `form` times `activations` are multiplied as they are on `architecture`, in words."""
    operands = OPERANDS[architecture][0]
    beside = (activations or "").split(" ")[0] or None
    if form == beside or (beside is None and form in ("bf16", "fp16", "fp8", "int8")):
        return same_type(form, operands)
    if form in ("mxfp4", "nvfp4") and beside is None:
        return engine_chooses(form, operands, architecture)
    bits = {"int4": "4", "mxfp4": "4", "nvfp4": "4"}.get(form, "8")
    return Verdict(
        False,
        f"weights are unpacked to {beside or '16-bit floats'} on the way: memory traffic of {bits} bits, "
        f"arithmetic at the rate of {beside or '16-bit floats'}",
    )


def same_type(form: str, operands: frozenset[str]) -> Verdict:
    """Weights and activations of one type."""
    if form in operands:
        return Verdict(True, f"multiplied as {form} on both sides")
    if form in ("nvfp4", "mxfp4", "mxfp8"):
        return Verdict(
            False,
            f"no {form} in these tensor cores: weight-only at best, unpacked to 16-bit or float8; "
            "memory traffic of the small type, arithmetic at the rate of the large one",
        )
    return Verdict(False, f"no {form} in these tensor cores: converted to a type that they have")


def engine_chooses(form: str, operands: frozenset[str], architecture: str) -> Verdict:
    """4-bit weights whose checkpoint does not say what multiplies them."""
    if form not in operands:
        return Verdict(
            False,
            f"no {form} in these tensor cores: unpacked to 16-bit or float8, memory traffic of 4 bits",
        )
    mixed = f"; with float8 activations {MIXED[architecture]}, at the rate of float8" if form == "mxfp4" else ""
    return Verdict(
        True,
        f"the engine chooses the activations: {form} on both sides at the full rate{mixed}; "
        "with 16-bit activations the weights are unpacked (weight-only)",
    )
