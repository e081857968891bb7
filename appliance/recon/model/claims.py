"""What a name claims of a checkpoint ("nvfp4", "W4A16-FP8-MTP"), held against what is there, in words."""

import re
from typing import NamedTuple

from appliance.documents.model import ClaimPart, Component, Mtp

FORMATS = ("nvfp4", "mxfp4", "fp4", "mxfp8", "fp8", "int4", "int8", "bf16", "fp16", "awq", "gptq")
WEIGHTS_AND_ACTIVATIONS = re.compile(r"^w(\d+)a(\d+)$")
NO_MTP = ("nomtp", "wo_mtp", "withoutmtp")
MAIN = ("routed_experts", "dense_mlp", "attention", "linear_attention", "mamba", "shared_experts")
"""Components whose format a name usually speaks of."""
WORDS = re.compile(r"[^A-Za-z0-9]+")
PLAIN_BITS = 16


class Shares(NamedTuple):
    """Entries that match, and entries of the main components that do not, of one basis."""

    matching: list[Component]
    others: list[Component]


def claims_in(text: str) -> list[str]:
    """The parts of `text` that claim something known here, in order: ["w4a16", "fp8", "mtp"]."""
    words = [word.lower() for word in WORDS.split(text) if word]
    joined = [f"{a}{b}" for a, b in zip(words, words[1:], strict=False)]
    found = [word for word in words if word in FORMATS or word == "mtp" or WEIGHTS_AND_ACTIVATIONS.match(word)]
    if any(word in NO_MTP for word in (*words, *joined)):
        found = [word for word in found if word != "mtp"] + ["nomtp"]
    return list(dict.fromkeys(found))


def reconcile(claims: list[str], components: list[Component], mtp: Mtp | None) -> list[ClaimPart]:
    """Hold each of the claims (claims_in) against the components of the best basis and the MTP layers."""
    return [reconcile_one(claim, claims, components, mtp) for claim in claims]


def reconcile_one(claim: str, claims: list[str], components: list[Component], mtp: Mtp | None) -> ClaimPart:
    """One claim; the others tell what is meant where one name holds several formats."""
    if claim in ("mtp", "nomtp"):
        return mtp_claim(claim, claims, components, mtp)
    main = [entry for entry in components if entry.component in MAIN and entry.modules]
    known = [entry for entry in main if entry.format != "unknown"]
    if not known:
        return ClaimPart(claim=claim, verdict="unknown", words="nothing at hand says how the weights are stored")
    shares = Shares([e for e in known if fits(claim, e)], [e for e in known if not fits(claim, e)])
    unknown = [entry for entry in main if entry.format == "unknown"]
    if not shares.matching:
        near = weight_only(claim, known)
        if near:
            words = f"{listing(near)}: the weights are, the activations beside them are not (weight-only)"
            return ClaimPart(claim=claim, verdict="agrees in part", words=f"{words}; {rest(claim, known, near)}")
        return ClaimPart(claim=claim, verdict="differs", words=f"nothing is {claim}: {listing(known)}")
    words = listing(shares.matching)
    notes = [f"unknown: {', '.join(sorted({entry.component for entry in unknown}))}"] if unknown else []
    total = sum(entry.parameters for entry in known)
    part = sum(entry.parameters for entry in shares.matching)
    if shares.others:
        notes.append(f"not {claim}: {listing(shares.others)}")
    if total:
        notes.append(f"{100 * part / total:.1f} % of these weights are {claim}")
    verdict = "agrees in part" if shares.others or unknown else "agrees"
    return ClaimPart(claim=claim, verdict=verdict, words="; ".join([f"{claim}: {words}", *notes]))


def fits(claim: str, entry: Component) -> bool:
    """Whether a component is what the claim says."""
    if claim in ("awq", "gptq"):
        return (entry.packing or "").startswith(claim)
    if claim == "fp4":
        return entry.format in ("nvfp4", "mxfp4")
    pair = WEIGHTS_AND_ACTIVATIONS.match(claim)
    if pair:
        return (entry.bits, activation_bits(entry)) == (int(pair[1]), int(pair[2]))
    if claim == "nvfp4" and entry.format == "nvfp4":
        return activation_bits(entry) in (4, None)
    return entry.format == claim


def weight_only(claim: str, known: list[Component]) -> list[Component]:
    """Components whose weights are in the format claimed, with activations that are not."""
    return [entry for entry in known if claim == entry.format and activation_bits(entry) == PLAIN_BITS]


def activation_bits(entry: Component) -> int | None:
    """Bits of the activations beside a component's weights, or None where nothing says."""
    name = (entry.activations or "").split(" ")[0]
    return {"bf16": 16, "fp16": 16, "fp32": 32, "fp8": 8, "mxfp8": 8, "int8": 8, "nvfp4": 4, "mxfp4": 4}.get(name)


def mtp_claim(claim: str, claims: list[str], components: list[Component], mtp: Mtp | None) -> ClaimPart:
    """Whether there are MTP layers, and in which format they are where the name speaks of formats too."""
    if mtp is None or mtp.count is None:
        return ClaimPart(claim=claim, verdict="unknown", words="nothing at hand says whether there are MTP layers")
    there = f"{mtp.count} MTP layer{'s' if mtp.count != 1 else ''}, by {mtp.basis}"
    if claim == "nomtp":
        if mtp.count and mtp.basis != "tensor names":
            words = f"{there}: quantisers leave that as it was, only tensor names decide"
            return ClaimPart(claim=claim, verdict="unknown", words=words)
        return ClaimPart(claim=claim, verdict="agrees" if mtp.count == 0 else "differs", words=there)
    if mtp.count == 0:
        return ClaimPart(claim=claim, verdict="differs", words=f"{there}: nothing to speculate with")
    entries = [entry for entry in components if entry.component == "mtp" and entry.format != "unknown"]
    if not entries:
        return ClaimPart(claim=claim, verdict="agrees", words=there)
    formats = [word for word in claims if word not in ("mtp", "nomtp")]
    unlike = formats and not any(fits(word, entry) for word in formats for entry in entries)
    words = f"{there}, stored as {', '.join(describe(entry) for entry in entries)}"
    if unlike:
        words += f": not as the rest of the name reads ({', '.join(formats)})"
    return ClaimPart(claim=claim, verdict="agrees in part" if unlike else "agrees", words=words)


def listing(entries: list[Component]) -> str:
    """ "routed_experts nvfp4 16 (nvfp4 static), attention fp8 128x128 (fp8 dynamic)"."""
    return ", ".join(f"{entry.component} {describe(entry)}" for entry in entries)


def describe(entry: Component) -> str:
    """ "nvfp4 16 (activations nvfp4 static)"."""
    group = f" {entry.group}" if entry.group else ""
    beside = f" (activations {entry.activations})" if entry.activations and entry.activations != entry.format else ""
    return f"{entry.format}{group}{beside}"


def rest(claim: str, known: list[Component], near: list[Component]) -> str:
    """What is in another format altogether."""
    others = [entry for entry in known if entry not in near]
    return f"not {claim}: {listing(others)}" if others else f"all of it {claim}"
