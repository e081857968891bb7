"""A ModelReport for a person."""

import re

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from appliance.documents import ModelReport
from appliance.documents.model import Component

GIB = 1 << 30
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""What a name out of somebody's file must not do to a terminal."""


def show_model(console: Console, report: ModelReport) -> None:
    """Print the report for a person."""
    for line in heading(report):
        console.print(printable(line), markup=False)
    console.print(quantisation_table(report))
    sections = {
        "claims": [f"{part.claim}: {part.verdict}. {part.words}" for part in report.claims],
        "tensor cores": tensor_core_lines(report),
        "remarks": report.remarks,
        "files": file_lines(report),
    }
    for title, lines in sections.items():
        if lines:
            console.print(f"{title}:", markup=False)
            for line in lines:
                console.print(f"  {printable(line)}", markup=False)


def printable(text: str) -> str:
    """`text` without control characters."""
    return CONTROL.sub("?", text)


def heading(report: ModelReport) -> list[str]:
    """Shape, attention, memory and MTP, a line each."""
    at = f" at {report.revision[:12]}" if report.revision else ""
    lines = [f"{report.path}{at}: {report.architecture}", f"parameters {billions(report)}; {context(report)}"]
    attention, kv = report.attention, report.kv_cache
    if attention is not None:
        layers = ", ".join(f"{count} {kind}" for kind, count in attention.layers.items())
        heads = f"{report.heads} heads, {report.kv_heads} KV heads"
        lines.append(f"attention {attention.kind}: {report.layers} layers ({layers}), {heads}")
    if kv is not None:
        sizes = ", ".join(f"{size:,.0f} B ({kind})" for kind, size in kv.bytes_per_token.items())
        asked = kv.declared_dtype or "nothing: the engine's default"
        lines.append(f"KV cache a token: {sizes}; the checkpoint asks for {asked}")
        if kv.bytes_per_sequence:
            held = ", ".join(f"{size / 2**20:,.1f} MiB ({kind})" for kind, size in kv.bytes_per_sequence.items())
            lines.append(f"KV cache and states a sequence, whatever its length: {held}")
    if report.experts is not None:
        experts = report.experts
        lines.append(
            f"experts {experts.routed}, top {experts.top_k}, {experts.shared or 0} shared, width {experts.width}"
        )
    if report.mtp is not None:
        count = "unknown" if report.mtp.count is None else str(report.mtp.count)
        lines.append(f"MTP layers {count} (by {report.mtp.basis}; declared {report.mtp.declared})")
    if report.weight_bytes is not None:
        ranks = ", ".join(rank_words(rank.tp, rank.ep, rank.bytes) for rank in report.ranks)
        lines.append(
            f"weights {report.weight_bytes / GIB:,.1f} GiB ({report.sources.get('weight_bytes')}); a rank: {ranks}"
        )
        lines += [f"  TP {rank.tp}: {remark}" for rank in report.ranks for remark in rank.remarks]
    return lines


def rank_words(tp: int, ep: int, size: int) -> str:
    """ "TP4 40.8 GiB"."""
    return f"TP{tp}{f' EP{ep}' if ep > 1 else ''} {size / GIB:,.1f} GiB"


def billions(report: ModelReport) -> str:
    """Parameters in words."""
    if report.parameters is None:
        return "unknown"
    active = f", {report.parameters_active / 1e9:,.1f} B active" if report.parameters_active else ""
    return f"{report.parameters / 1e9:,.1f} B{active}"


def context(report: ModelReport) -> str:
    """Context length in words."""
    rope = report.rope
    scaled = f", {report.context_length_scaled} by rope scaling" if report.context_length_scaled else ""
    how = f" ({rope.kind} x{rope.factor:g} from {rope.original_context})" if rope and rope.factor else ""
    return f"context {report.context_length}{scaled}{how}"


def quantisation_table(report: ModelReport) -> Table:
    """One row for each component and format of the best basis; what the configuration says instead is a remark."""
    table = Table("component", "format", "group", "activations", "parameters", "GiB", box=None, pad_edge=False)
    for entry in best_entries(report):
        table.add_row(
            *(
                escape(printable(cell or ""))
                for cell in (entry.component, entry.format, entry.group, entry.activations)
            ),
            f"{entry.parameters / 1e9:,.2f} B",
            f"{entry.bytes / GIB:,.2f}",
        )
    return table


def best_entries(report: ModelReport) -> list[Component]:
    """The entries read from tensors where there are any, otherwise those that the configuration declares."""
    found = [entry for entry in report.quantisation if entry.basis == "tensors"]
    return found or report.quantisation


def tensor_core_lines(report: ModelReport) -> list[str]:
    """What each architecture does with each format."""
    return [
        f"{use.architecture}, {use.format} ({', '.join(use.components)}): {use.words}" for use in report.tensor_cores
    ]


def file_lines(report: ModelReport) -> list[str]:
    """The state of the files, and each problem."""
    if report.integrity is None:
        return []
    integrity = report.integrity
    hashed = f", {integrity.hashed} hashed and compared" if integrity.hashed else ""
    lines = [f"{integrity.files} files, {integrity.bytes / GIB:,.1f} GiB{hashed}; {len(integrity.problems)} problems"]
    return lines + [f"{problem.kind}: {problem.file}: {problem.words}" for problem in integrity.problems]
