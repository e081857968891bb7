"""The report: records and what belongs to them as one page."""

from html import escape

from appliance.bench.compare import compare
from appliance.bench.report import others, sections
from appliance.bench.report.chart import standalone
from appliance.documents import BenchRecord, KernelBench, ProfileReport
from appliance.errors import InputError
from appliance.web.page import listed, page

READING = (
    "A cell is one workload on one topology. Each is measured several times; the median is shown with least and "
    "most. TTFT: time to the first token. TPOT: time of each further token. Tokens are counted by the answers' usage, "
    "prompts are unique and caches empty unless a mix says otherwise; failed requests are counted, in no latency."
)


def report(records: list[BenchRecord], kernels: list[KernelBench], profiles: list[ProfileReport]) -> str:
    """HTML of the report. Raises InputError where there is nothing."""
    if not records and not kernels and not profiles:
        raise InputError("nothing to report; expected a BenchRecord, a KernelBench or a ProfileReport")
    body = []
    for number, record in enumerate(records):
        name = f"Run {number + 1}: " if len(records) > 1 else ""
        body.append(run(record, name))
    for number, record in enumerate(records[1:], start=2):
        body.append(f"<h2>Run {number} against run 1</h2>{against(records[0], record)}")
    body += [f"<h2>Kernels</h2>{others.kernels(bench)}" for bench in kernels]
    body += [f"<h2>Why is it slow</h2>{others.profile(profile)}" for profile in profiles]
    return page(title_of(records, kernels), "".join(body))


def title_of(records: list[BenchRecord], kernels: list[KernelBench]) -> str:
    """What the page is about."""
    if not records:
        return f"Kernels on {kernels[0].gpu.name}" if kernels else "Where the time goes"
    first = records[0]
    model = next(iter(first.topologies.values())).plan.model.served_name
    return f"{model}: {', '.join(first.asked.topologies)} side by side"


def run(record: BenchRecord, name: str) -> str:
    """One record."""
    warnings = []
    if record.simulated:
        warnings.append("SIMULATED: these figures come from a latency profile. No engine was measured.")
    if record.stamp.missing:
        missing = ", ".join(record.stamp.missing)
        warnings.append(f"UNSTAMPED: {missing} not known. These figures cannot be compared with any other.")
    if not record.complete:
        warnings.append("NOT COMPLETE: the run was stopped before all that was asked for was measured.")
    pictures = "".join(picture.html() for picture in sections.curves(record))
    tails = "".join(picture.html() for picture in sections.tails(record))
    parts = [
        "".join(f'<p class="loud">{escape(line)}</p>' for line in warnings),
        "".join(f"<p>{escape(line)}</p>" for line in record.remarks),
        f'<p class="soft">{escape(READING)}</p>',
        f"<h2>{escape(name)}Throughput against latency</h2>{pictures}" if pictures else "",
        f"<h2>{escape(name)}Matrix</h2>{sections.heat_map(record)}" if sections.plain(record) else "",
        f"<h2>{escape(name)}Tail isolation</h2>{tails}" if tails else "",
        f"<h2>{escape(name)}Share of limits</h2>{sections.limits(record)}",
        f"<h2>{escape(name)}All figures</h2>{sections.all_cells(record)}",
        f"<h2>{escape(name)}Where the figures come from</h2>{provenance(record)}",
    ]
    return "".join(parts)


def provenance(record: BenchRecord) -> str:
    """Everything that a figure needs beside it."""
    machine, stamp = record.machine, record.stamp
    gpus = {}
    for gpu in machine.gpus:
        gpus[gpu.name or "unknown GPU"] = gpus.get(gpu.name or "unknown GPU", 0) + 1
    peers = stamp.peer_to_peer or {}
    pairs = [
        ("date", record.date),
        ("command", record.command),
        ("simulated", "yes" if record.simulated else "no"),
        ("GPUs", ", ".join(f"{count} x {name}" for name, count in gpus.items()) or "none"),
        ("CPU", machine.cpu_model or "unknown"),
        ("driver", stamp.driver or "none"),
        ("power limits", ", ".join(f"{limit:g} W" for limit in stamp.power_limits_w or []) or "not known"),
        ("peer to peer", f"{sum(peers.values())} of {len(peers)} pairs" if peers else "not known, or one GPU"),
        ("model", f"{record.model.architecture}, {record.model.path}"),
        ("engine", f"sglang {record.engine.version}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in stamp.versions.items())),
        ("closure", f"{stamp.closure} ({stamp.closure_basis})" if stamp.closure else "not known"),
        ("appliance", record.appliance_version),
        ("load tool", f"{record.load_tool} {record.load_tool_version or ''}"),
        ("order of starts", ", ".join(record.order)),
        ("repetitions", f"{record.asked.repetitions} over {record.asked.rounds} rounds, seed {record.asked.seed}"),
    ]
    pairs += [(f"plan of {name}", benched.plan_identity) for name, benched in record.topologies.items()]
    return listed(pairs)


def against(first: BenchRecord, other: BenchRecord) -> str:
    """How a record differs from the first; why it cannot be said, where it cannot."""
    try:
        return others.comparison(compare(first, other, threshold=0.05))
    except InputError as error:
        return f'<p class="loud">Not compared: {escape(str(error))}</p>'


def pictures(records: list[BenchRecord]) -> dict[str, str]:
    """Every picture of the report as a file of its own: SVG by file name."""
    found = {}
    for number, record in enumerate(records):
        prefix = f"run-{number + 1}-" if len(records) > 1 else ""
        for picture in [*sections.curves(record), *sections.tails(record)]:
            found[f"{prefix}{picture.name}.svg"] = standalone(picture.svg)
    return found
