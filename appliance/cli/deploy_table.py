"""How a deploy is shown to people."""

from appliance.documents import DeployHistory, DeployState
from appliance.documents.deploy import DeployChanges


def change_lines(found: DeployChanges) -> list[str]:
    """What a deploy would change, a line each."""
    units = ", ".join(f"{name} ({what})" for name, what in found.units.items()) or "none"
    free = found.store_free_bytes
    room = f"{size(free)} free there before, {size(free - found.copy_bytes)} after" if free is not None else "not known"
    down = f"about {found.down_s:g} s, as the last time" if found.down_s is not None else "not known yet"
    lines = [
        f"{found.host} ({found.host_kind})",
        f"  runs        {found.running or 'nothing of the appliance'}",
        f"  will run    {found.generation}",
        f"  units       {units}",
        *(f"  argument    {line}" for line in found.arguments),
        f"  to copy     {size(found.copy_bytes)} of a closure of {size(found.closure_bytes)}",
        f"  store       {room}",
        f"  stops       {', '.join(found.stops) or 'nothing'}",
        f"  no service  {down}; at most {found.down_at_most_s:g} s and the checks",
    ]
    if found.may_hold_gpus:
        lines.append(f"  may be in the way: {', '.join(found.may_hold_gpus)}; name with --stop what holds the GPUs")
    return lines + [f"  PROBLEM     {problem}" for problem in found.problems]


def history_lines(found: DeployHistory) -> list[str]:
    """Every deploy in one line, and why it was given up in another."""
    lines = []
    for record in found.records:
        speed = f", {record.output_tokens_per_s:g} tokens/s" if record.output_tokens_per_s is not None else ""
        lines.append(
            f"{record.started}  {record.reason} {record.outcome}: {record.generation} ({record.model}{speed}), "
            f"by {record.requested_by}"
        )
        if record.failure:
            lines.append(f"    {record.failure.check}: {record.failure.evidence}")
    return lines or ["nothing was deployed yet"]


def state_lines(host: str, state: DeployState) -> list[str]:
    """What a host runs, and how far a deploy is."""
    lines = [f"{host} ({state.host_kind})", f"  runs   {state.running}", f"  boots  {state.boot_default}"]
    if state.holder:
        lines.append(f"  held by {state.holder}")
    if state.journal:
        last = state.journal.events[-1]
        lines.append(f"  {state.journal.request.id}: {last.step}, {last.text}")
    return lines


def size(amount: int) -> str:
    """Bytes for people."""
    return f"{amount / 1e9:.2f} GB" if amount >= 1e9 else f"{amount / 1e6:.2f} MB"
