"""A ModelReport for a person."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from appliance.cli.plain_text import printable, wrapped
from appliance.documents import ModelReport
from appliance.documents.model import Component, Mtp

GIB = 1 << 30
LONGEST_CELL = 18
UNKNOWN = "unknown"


def show_model(console: Console, report: ModelReport) -> None:
    """Print the report for a person."""
    for label, text in heading(report):
        show(console, text, label=f"{label:<12}")
    if report.quantisation:
        console.print()
        console.print(quantisation_table(report))
    sections = {
        "claims": [f"{part.claim}: {part.verdict}. {part.words}" for part in report.claims],
        "tensor cores": tensor_core_lines(report),
        "remarks": report.remarks,
        "files": file_lines(report),
    }
    for title, lines in sections.items():
        if lines:
            console.print(f"\n{title}:", markup=False)
            for line in lines:
                show(console, line, label="- ")


def show(console: Console, text: str, label: str) -> None:
    """Print a paragraph after its label, within the width."""
    console.print("\n".join(wrapped(text, label=label)), markup=False)


def heading(report: ModelReport) -> list[tuple[str, str]]:
    """Shape, attention, memory and MTP, each as (label, text)."""
    at = f" at {report.revision[:12]}" if report.revision else ""
    lines = [
        ("model", f"{report.path}{at}: {report.architecture}"),
        ("parameters", billions(report)),
        ("context", context(report)),
    ]
    attention, kv = report.attention, report.kv_cache
    if attention is not None:
        layers = ", ".join(f"{count} {kind}" for kind, count in attention.layers.items())
        heads = f"{report.heads} heads, {report.kv_heads} KV heads"
        lines.append(("attention", f"{attention.kind}: {report.layers} layers ({layers}), {heads}"))
    if kv is not None:
        sizes = ", ".join(f"{size:,.0f} B ({kind})" for kind, size in kv.bytes_per_token.items())
        asked = f"the checkpoint asks for {kv.declared_dtype}" if kv.declared_dtype else "the checkpoint names no type"
        lines.append(("KV cache", f"{sizes} a token; {asked}"))
        if kv.bytes_per_sequence:
            held = ", ".join(f"{size / 2**20:,.1f} MiB ({kind})" for kind, size in kv.bytes_per_sequence.items())
            lines.append(("", f"and {held} a sequence, whatever its length"))
    if report.experts is not None:
        experts = report.experts
        shared = f"{experts.shared or 0} shared"
        lines.append(("experts", f"{experts.routed}, top {experts.top_k}, {shared}, width {experts.width}"))
    if report.mtp is not None:
        lines.append(("MTP layers", mtp(report.mtp)))
    if report.weight_bytes is not None:
        ranks = ", ".join(rank_words(rank.tp, rank.ep, rank.bytes) for rank in report.ranks)
        lines.append(("weights", f"{report.weight_bytes / GIB:,.1f} GiB ({report.sources.get('weight_bytes')})"))
        lines.append(("", f"a rank: {ranks}" if ranks else "a rank: not computed"))
        lines += [("", f"TP{rank.tp}: {remark}") for rank in report.ranks for remark in rank.remarks]
    return lines


def mtp(found: Mtp) -> str:
    """MTP layers in words: how many there are, and what says so."""
    if found.count is None:
        return UNKNOWN if found.declared is None else f"{UNKNOWN}; declared {found.declared}"
    declared = "" if found.declared in (None, found.count) else f"; declared {found.declared}"
    return f"{found.count} (by {found.basis}{declared})"


def rank_words(tp: int, ep: int, size: int) -> str:
    """ "TP4 40.8 GiB"."""
    return f"TP{tp}{f' EP{ep}' if ep > 1 else ''} {size / GIB:,.1f} GiB"


def billions(report: ModelReport) -> str:
    """Parameters in words."""
    if report.parameters is None:
        return UNKNOWN
    active = f", {report.parameters_active / 1e9:,.1f} B active" if report.parameters_active else ""
    return f"{report.parameters / 1e9:,.1f} B{active}"


def context(report: ModelReport) -> str:
    """Context length in words."""
    rope = report.rope
    scaled = f", {report.context_length_scaled} by rope scaling" if report.context_length_scaled else ""
    how = f" ({rope.kind} x{rope.factor:g} from {rope.original_context})" if rope and rope.factor else ""
    return f"{UNKNOWN if report.context_length is None else report.context_length}{scaled}{how}"


def quantisation_table(report: ModelReport) -> Table:
    """One row for each component and format of the best basis; what the configuration says instead is a remark."""
    table = Table("component", "format", "group", "activations", "parameters", "GiB", box=None, pad_edge=False)
    for entry in best_entries(report):
        table.add_row(
            *(
                escape(printable(cell or "")[:LONGEST_CELL])
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
