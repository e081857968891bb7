"""An EngineReport in words, at most 80 columns wide."""

from collections import Counter
from collections.abc import Iterator

from appliance.cli.plain_text import wrapped
from appliance.documents import EngineReport, KernelStep


def lines(report: EngineReport) -> list[str]:
    """The report, section by section; a section that could not be found out has its reason."""
    version = report.version or "not installed"
    return [
        f"{report.name} {version} on Python {report.python}; {report.family or 'no family'} on {report.arch or '?'}",
        *section(report, "steps", "Steps", steps),
        *section(report, "limits", "Limits of these kernels", limits),
        *section(report, "forced", "Set by the engine itself", forced),
        *section(report, "pins", "Pins that are not met", pins),
        *section(report, "binaries", "Shipped GPU code", binaries),
        *section(report, "tools", "Tools of run-time compilation", tools),
        *section(report, "transfer_backends", "NIXL backends", transfer),
        *section(report, "gates", "Gates on the architecture", gates),
        *section(report, "options", "Server options", options),
    ]


def section(report: EngineReport, field: str, title: str, body) -> Iterator[str]:
    """A heading and the lines of `body`, or why the field is null."""
    yield ""
    yield title
    if getattr(report, field) is None:
        yield from wrapped(report.sources.get(field, "not asked for"), "  ")
    else:
        yield from body(report)


def steps(report: EngineReport) -> Iterator[str]:
    """Each step: its kernel, where that is decided, what to do otherwise, what is lacking."""
    for step in report.steps:
        yield from wrapped(f"{step.step} ({step.when})" if step.when else step.step, "  ")
        yield from details(step)


def details(step: KernelStep) -> Iterator[str]:
    """What is known of a step, a line for each kind of fact."""
    if step.kernel is None:
        yield from wrapped(f"unknown: {step.reason}", "    ")
        return
    yield from wrapped(step.kernel, "    ", "runs      ")
    if step.decided_at:
        yield from wrapped(step.decided_at, "    ", "decided   ")
    if step.compiled_by:
        tools = {True: "are here", False: "are lacking", None: "were not looked for"}[step.can_compile]
        yield from wrapped(f"at run time by {step.compiled_by}; its tools {tools}", "    ", "compiled  ")
    if step.fallback:
        yield from wrapped(step.fallback, "    ", "else      ")
    for choice in step.force:
        yield from wrapped(choice, "    ", "by        ")
    if step.note:
        yield from wrapped(step.note, "    ", "note      ")
    for problem in step.lacking:
        yield from wrapped(problem, "    ", "lacking   ")


def limits(report: EngineReport) -> Iterator[str]:
    """Each limit with its numbers, or why they are not known."""
    if not report.limits:
        yield "  the table names none"
    for limit in report.limits:
        values = " ".join(map(str, limit.values)) if limit.values else f"unknown: {limit.reason}"
        yield from wrapped(f"{limit.name}: {values}", "  ")


def forced(report: EngineReport) -> Iterator[str]:
    """Each setting with its conditions."""
    for setting in report.forced:
        default = f" (default {setting.default})" if setting.default is not None else ""
        value = setting.value if setting.value is not None else setting.expression
        yield from wrapped(f"{setting.name} = {value}{default}{', unless it is set' * setting.unless_set}", "  ")
        for condition in setting.when:
            yield from wrapped(condition, "      ", "if ")
        yield from wrapped(setting.where, "      ")


def pins(report: EngineReport) -> Iterator[str]:
    """Counts, then each pin that is absent or another version."""
    counts = Counter(pin.state for pin in report.pins)
    yield f"  {counts['met']} met, {counts['other version']} other versions, {counts['absent']} absent"
    for pin in report.pins:
        if pin.state != "met":
            yield from wrapped(f"{pin.package} {pin.wanted or ''}: {pin.installed or 'absent'}", "  ")


def binaries(report: EngineReport) -> Iterator[str]:
    """Each library: for which architectures, and what of it serves."""
    if not report.binaries:
        yield "  none of the engine's compiled packages is installed"
    for binary in report.binaries:
        if binary.serves is None:
            verdict = binary.by or "no architecture to hold it against"
        else:
            verdict = f"{'serves' if binary.serves else 'no'} ({binary.by})"
        yield from wrapped(f"{binary.package} {binary.file}", "  ")
        held = " ".join(name.removeprefix("sm_") for name in binary.machine_code) or "no machine code"
        ptx = f"; PTX {' '.join(binary.ptx)}" if binary.ptx else "; no PTX"
        yield from wrapped(f"{held}{ptx}: {verdict}", "    ")


def tools(report: EngineReport) -> Iterator[str]:
    """Each tool with version and place."""
    for tool in report.tools:
        yield from wrapped(f"{tool.name} {tool.version} at {tool.path}" if tool.version else str(tool.reason), "  ")
        if tool.architectures:
            yield from wrapped(" ".join(tool.architectures), "    ")


def transfer(report: EngineReport) -> Iterator[str]:
    """Which backends and UCX modules load, and why not."""
    for backend in report.transfer_backends:
        yield from wrapped("loads" if backend.loads else f"no: {backend.reason}", "  ", f"{backend.name:<12} ")
    for module in report.transport_modules or []:
        yield from wrapped("loads" if module.loads else f"no: {module.reason}", "  ", f"UCX {module.name:<12} ")


def gates(report: EngineReport) -> Iterator[str]:
    """How many there are and what they come to; all of them are in the document."""
    counts = Counter(str(gate.value) if isinstance(gate.value, bool) else "other" for gate in report.gates)
    yield from wrapped(
        f"{len(report.gates)} places; {counts['True']} hold on {report.arch}, {counts['False']} do not, "
        f"{counts['other']} depend on more (--json lists them)",
        "  ",
    )
    for gate in report.gates:
        if gate.kind == "definition" and gate.where.startswith("sglang/srt/utils/common.py") and gate.value is not None:
            yield from wrapped(f"{gate.value}", "  ", f"{gate.code.split(' = ')[0][:40]:<42}")


def options(report: EngineReport) -> Iterator[str]:
    """How many there are; all of them are in the document."""
    yield f"  {len(report.options)} (--json lists them with defaults and places)"
