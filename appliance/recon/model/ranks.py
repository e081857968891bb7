"""Bytes of weights on one rank of a tensor-parallel group.

Linear layers, embedding and head are split evenly; K and V projections by KV heads, at least one a rank; routed
experts whole over `ep` ranks and split over the rest; routers, indexers, compressors, latent (rank-reducing)
projections, norms and vision towers are on every rank (names.sharding_of). Workspaces, graphs and what an engine
repacks come on top.
"""

from collections.abc import Iterable

from appliance.documents.model import Component, RankBytes
from appliance.errors import InputError
from appliance.recon.model.configuration import Shape
from appliance.recon.model.weights import Weights

USUAL = ((1, 1), (2, 1), (4, 1), (8, 1))


def ranks_of(
    weights: Weights, shape: Shape, components: Iterable[Component], layouts: Iterable[tuple[int, int]]
) -> list[RankBytes]:
    """Bytes on the fullest rank for each layout (tp, ep). Raises InputError where ep does not divide tp."""
    blocks = expert_blocks(components)
    return [one_rank(weights, shape, blocks, tp, ep) for tp, ep in layouts]


def one_rank(weights: Weights, shape: Shape, blocks: dict[str, int], tp: int, ep: int) -> RankBytes:
    """Bytes on the fullest of `tp` ranks."""
    if tp < 1 or ep < 1 or tp % ep:
        raise InputError(f"tp {tp}, ep {ep}: expected ep to divide tp")
    split = weights.split
    total = split["replicated"] + split["split"] / tp + split["kv_heads"] / min(tp, shape.kv_heads or tp)
    if shape.experts:
        share = -(-shape.experts // ep) / shape.experts
        total += split["experts"] * share / (tp // ep)
    else:
        total += split["experts"] / tp
    return RankBytes(tp=tp, ep=ep, bytes=round(total), remarks=remarks(shape, blocks, tp, ep))


def remarks(shape: Shape, blocks: dict[str, int], tp: int, ep: int) -> list[str]:
    """What does not come out even in this layout."""
    words = []
    if shape.heads and shape.heads % tp:
        words.append(f"{shape.heads} heads do not divide by {tp}: engines refuse")
    if shape.kv_heads and shape.kv_heads < tp and shape.kv_heads > 1:
        words.append(f"{shape.kv_heads} KV heads on {tp} ranks: K and V are kept {tp // shape.kv_heads} times")
    if shape.experts and shape.experts % ep:
        words.append(f"{shape.experts} experts do not divide by {ep}")
    inner = tp // ep
    if shape.experts and shape.expert_width:
        for name, block in blocks.items():
            if shape.expert_width % (inner * block):
                words.append(
                    f"expert width {shape.expert_width} / {inner} is no multiple of the {block} of {name}: "
                    "kernels refuse it or pad; experts spread whole (ep) are not cut"
                )
    return words


def expert_blocks(components: Iterable[Component]) -> dict[str, int]:
    """For each format of the routed experts that has blocks or groups: how many values share a scale."""
    blocks = {}
    for entry in components:
        first = (entry.group or "").partition("x")[0]
        if entry.component == "routed_experts" and first.isdigit() and int(first) > 0:
            blocks[f"{entry.format} {entry.group}"] = int(first)
    return blocks
