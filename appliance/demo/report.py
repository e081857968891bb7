"""A RunRecord as a page that people read."""

from appliance.documents import Cell, RunRecord

COLUMNS = ["concurrency", "requests", "TTFT ms", "TPOT ms", "ITL ms", "tok/s out"]
PERCENTILES = "TTFT, TPOT and ITL: p50 / p99"


def row(cell: Cell) -> list[str]:
    """One cell, measured once, as the texts of its table row, in the order of COLUMNS."""

    measured = cell.repetitions[0]

    def both(distribution) -> str:
        return f"{distribution.p50:.1f} / {distribution.p99:.1f}"

    return [
        str(cell.workload.concurrency),
        f"{cell.completed} of {cell.requests}",
        both(measured.ttft_ms),
        both(measured.tpot_ms),
        both(measured.itl_ms),
        f"{measured.output_tokens_per_s:.1f}",
    ]


def report(record: RunRecord) -> str:
    """The record as Markdown."""
    machine, model, plan = record.machine, record.model, record.plan
    cpus = machine.cpus_allowed or "unknown"
    lines = [
        f"# {plan.topology}: {model.architecture}, {model.parameters / 1e6:.1f} M parameters",
        "",
        f"- date: {record.date}",
        f"- command: `{record.command}`",
        f"- machine: {machine.cpu_model}, CPUs {cpus}, {machine.memory_mib} MiB, {len(machine.gpus)} NVIDIA GPUs",
        f"- engine: sglang {record.engine.version}, "
        + ", ".join(f"{name} {version}" for name, version in record.engine.packages.items() if version),
        f"- plan: {record.plan_identity}",
        "- started: " + ", ".join(f"{name} in {seconds:.1f} s" for name, seconds in record.start_seconds.items()),
        "",
        *(f"> {remark}" for remark in record.remarks),
        "",
        "## Checks",
        "",
        *(f"- {'held' if c.passed else '**FAILED**'}: {c.name}: {c.evidence}" for c in record.checks),
        "",
        f"## Measured with {record.bench_tool}",
        "",
        PERCENTILES,
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + " --- |" * len(COLUMNS),
        *("| " + " | ".join(row(cell)) + " |" for cell in record.cells),
        "",
    ]
    return "\n".join(lines)
