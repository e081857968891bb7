"""Layers that draft tokens (MTP, nextn, DSpark stages): how many there are, and how that is known.

The tensors decide: a configuration keeps its number of MTP layers when a quantiser drops them, and V4-Flash-0731
declares one where there are three.
"""

from appliance.documents.model import Mtp
from appliance.recon.model.configuration import Shape


def mtp_of(shape: Shape, tensors: dict[str, int] | None) -> Mtp:
    """MTP layers from the number of `tensors` by layer prefix; from the configuration where that is None."""
    declared = {"declared": shape.mtp_declared, "declared_key": shape.mtp_key}
    if tensors is not None:
        numbered = {prefix: count for prefix, count in tensors.items() if prefix != "mtp"}
        count = len(numbered) or (1 if tensors else 0)
        return Mtp(count=count, basis="tensor names", tensors=dict(sorted(tensors.items())), **declared)
    ratios = shape.text.get("compress_ratios")
    if isinstance(ratios, list) and shape.layers and len(ratios) >= shape.layers:
        return Mtp(count=len(ratios) - shape.layers, basis="compress_ratios", **declared)
    if shape.mtp_declared is not None:
        return Mtp(count=shape.mtp_declared, basis="configuration", **declared)
    return Mtp(count=None, basis="unknown", **declared)


def remarks(mtp: Mtp) -> list[str]:
    """What to know where the declared number is not the one that was found."""
    if mtp.count is None or mtp.declared is None or mtp.count == mtp.declared:
        return []
    found = f"the {mtp.basis} show {mtp.count}"
    words = f"{mtp.declared_key} says {mtp.declared}, {found}"
    if mtp.count == 0:
        return [f"{words}: there is nothing to speculate with, a server told to use MTP must be refused"]
    if mtp.count > mtp.declared:
        return [f"{words}: memory sized from the configuration is short by {mtp.count - mtp.declared}"]
    return [words]
