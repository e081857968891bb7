"""A MachineReport for people: plain text, 80 columns, the facts that a plan hangs on first."""

import textwrap

from appliance.cli.plain_text import WIDTH, printable
from appliance.documents import MachineReport
from appliance.documents.machine import Gpu

MOST_GPUS_IN_MATRIX = 12
MOST_ROWS = 24


def lines(report: MachineReport) -> list[str]:
    """The report as lines of at most WIDTH columns. What is not known is "-"."""
    parts = [
        head(report),
        gpus(report),
        health(report),
        matrix(report),
        nodes(report),
        adapters(report),
        switches(report),
        kernel(report),
        storage(report),
        models(report),
        running(report),
        versions(report),
        [wrapped(f"note: {note}") for note in report.notes],
        absent(report),
    ]
    flat: list[str] = []
    for part in parts:
        part = [line for block in part for line in block.split("\n")]
        flat += ([""] if flat and part else []) + [printable(line)[:WIDTH].rstrip() for line in part]
    return flat


def head(report: MachineReport) -> list[str]:
    """Who the machine is, in two lines."""
    cpu = report.processor
    sockets = f"{cpu.sockets} x " if cpu.sockets else ""
    count = f", {cpu.cpus} CPUs" if cpu.cpus else ""
    memory = f", {report.memory_mib // 1024} GiB" if report.memory_mib else ""
    host = "" if cpu.hypervisor == "unknown" else f" of {cpu.hypervisor}"
    guest = f", guest{host}" if cpu.hypervisor else ""
    model = report.cpu_model or "processor not known"
    return [
        wrapped(f"{report.hostname or 'machine'}: {sockets}{model}{count}{memory}{guest}"),
        wrapped(f"kernel {value(report.kernel)}, driver {value(report.driver)}, {len(report.gpus)} GPUs"),
    ]


def gpus(report: MachineReport) -> list[str]:
    """The GPUs: names above, since they are long and mostly alike, then a row each."""
    if not report.gpus:
        return [wrapped(f"no GPU ({report.sources.get('gpus', 'not looked for')})")]
    names: dict[str, list[int]] = {}
    for gpu in report.gpus:
        names.setdefault(gpu.name or "name not known", []).append(gpu.index)
    found = [wrapped(f"GPU {runs(indices)}: {name}") for name, indices in names.items()]
    rows = [
        [
            str(gpu.index),
            value(gpu.pci_bus_id),
            value(gpu.numa_node if gpu.numa_node is not None else gpu.numa_affinity),
            affinity(gpu),
            value(gpu.compute_capability),
            gib(gpu.memory_mib),
            gib(gpu.bar1_mib),
            link(gpu),
        ]
        for gpu in report.gpus[:MOST_ROWS]
    ]
    heading = ["GPU", "PCI address", "node", "CPUs", "cc", "GiB", "BAR1", "PCIe now/most"]
    return found + table(heading, rows, len(report.gpus))


def affinity(gpu: Gpu) -> str:
    """A GPU's CPU list, short enough for its column, with a mark where it is or may be cut."""
    text = shortened(gpu.cpu_affinity or "-", 24)
    return text + {True: " (cut)", None: ""}.get(gpu.cpu_affinity_cut if gpu.cpu_affinity else None, "")


def health(report: MachineReport) -> list[str]:
    """Power, temperature, what throttles, MIG and processes, where any of it is known."""
    known = [g for g in report.gpus if g.power_limit_w is not None or g.temperature_c is not None or g.mig_enabled]
    rows = [
        [
            str(gpu.index),
            f"{number(gpu.power_draw_w)}/{number(gpu.power_limit_w)}",
            number(gpu.power_limit_default_w),
            value(gpu.temperature_c),
            gib(gpu.memory_used_mib),
            {True: "on", False: "off", None: "-"}[gpu.mig_enabled],
            "-" if gpu.processes is None else str(len(gpu.processes)),
            "-" if gpu.throttle_reasons is None else shortened(", ".join(gpu.throttle_reasons) or "nothing", 26),
        ]
        for gpu in known[:MOST_ROWS]
    ]
    heading = ["GPU", "W now/limit", "default", "C", "used GiB", "MIG", "procs", "throttled by"]
    return table(heading, rows, len(known)) if rows else []


def matrix(report: MachineReport) -> list[str]:
    """The links among GPUs as a matrix, or counted by kind where there are too many; adapters by nearness."""
    kinds = {(entry.a, entry.b): entry.kind for entry in report.links}
    labels = [f"GPU{gpu.index}" for gpu in report.gpus]
    if len(labels) < 2 or not kinds:
        return []
    if len(labels) > MOST_GPUS_IN_MATRIX:
        counts: dict[str, int] = {}
        for (a, b), kind in kinds.items():
            if a.startswith("GPU") and b.startswith("GPU"):
                counts[kind] = counts.get(kind, 0) + 1
        text = ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1]))
        return [wrapped(f"GPU pairs: {text}")]
    width = max(len(kind) for kind in [*kinds.values(), *labels]) + 1
    rows = [" " * 6 + "".join(label.ljust(width) for label in labels)]
    for a in labels:
        cells = ["X" if a == b else kinds.get((a, b)) or kinds.get((b, a)) or "-" for b in labels]
        rows.append(a.ljust(6) + "".join(cell.ljust(width) for cell in cells))
    return rows


def nodes(report: MachineReport) -> list[str]:
    """The NUMA nodes with CPUs or GPUs; those of memory only are counted."""
    shown = [node for node in report.numa_nodes if node.cpus != "" or node.gpus]
    rows = [
        [str(n.id), shortened("-" if n.cpus is None else n.cpus or "none", 36), gib(n.memory_mib), runs(n.gpus) or "-"]
        for n in shown[:MOST_ROWS]
    ]
    rest = len(report.numa_nodes) - len(shown)
    more = [f"and {rest} nodes without CPUs"] if rest else []
    return (table(["node", "CPUs", "GiB", "GPUs"], rows, len(shown)) + more) if rows else []


def adapters(report: MachineReport) -> list[str]:
    """The network adapters with the GPUs nearest to each."""
    near: dict[str, list[int]] = {}
    for entry in report.links:
        if entry.b.startswith("NIC") and entry.a.startswith("GPU") and entry.kind in ("PIX", "PXB"):
            near.setdefault(entry.b, []).append(int(entry.a[3:]))
    rows = [
        [
            nic.name,
            shortened(nic.device or nic.interface or "-", 16),
            value(nic.pci_bus_id),
            value(nic.numa_node),
            f"{nic.speed_gbps:g}" if nic.speed_gbps else "-",
            shortened(nic.state or "-", 8),
            runs(near.get(nic.name, [])) or "-",
        ]
        for nic in (report.nics or [])[:MOST_ROWS]
    ]
    heading = ["adapter", "device", "PCI address", "node", "Gb/s", "state", "GPUs behind its switch"]
    return table(heading, rows, len(report.nics or [])) if rows else []


def switches(report: MachineReport) -> list[str]:
    """GPUs by the bridge above them, ACS that redirects peers, and the IOMMU."""
    found = []
    devices = {entry.address: entry for entry in report.pci_devices or []}
    groups: dict[str, list[int]] = {}
    for gpu in report.gpus:
        place = devices.get(gpu.pci_bus_id or "")
        up = devices.get((place.parent if place else None) or "")
        while up and up.kind != "switch_upstream":
            up = devices.get(up.parent or "")
        if up:
            groups.setdefault(up.address, []).append(gpu.index)
    found += [f"switch {address}: GPU {runs(indices)}" for address, indices in sorted(groups.items())]
    redirect = [e.address for e in devices.values() if e.acs and {"ReqRedir", "CmpltRedir"} & set(e.acs.enabled)]
    if redirect:
        found.append(wrapped(f"ACS redirects peer traffic on {len(redirect)} bridges: {', '.join(redirect[:6])}"))
    if report.iommu:
        types = sorted({group.type for group in report.iommu.groups if group.type})
        found.append(
            f"IOMMU: {'on' if report.iommu.enabled else 'off'}{' (' + ', '.join(types) + ')' if types else ''}"
        )
    return found


def kernel(report: MachineReport) -> list[str]:
    """The kernel's command line."""
    return [wrapped(f"cmdline: {report.kernel_settings.cmdline}")] if report.kernel_settings.cmdline else []


def storage(report: MachineReport) -> list[str]:
    """Free space by folder."""
    rows = [
        [shortened(s.path, 40), s.purpose, value(s.type), bytes_as_gib(s.free_bytes), bytes_as_gib(s.size_bytes)]
        for s in report.file_systems or []
    ]
    return table(["folder", "for", "type", "free GiB", "of GiB"], rows, len(rows)) if rows else []


def models(report: MachineReport) -> list[str]:
    """Models with whether they are whole."""
    rows = [
        [
            shortened(model.hub_id or model.path, 40),
            str(model.weight_files),
            bytes_as_gib(model.weight_bytes),
            "yes" if model.complete else shortened("no: " + "; ".join(model.problems), 20),
        ]
        for model in (report.models or [])[:MOST_ROWS]
    ]
    return table(["model", "files", "GiB", "whole"], rows, len(report.models or [])) if rows else []


def running(report: MachineReport) -> list[str]:
    """Engines that run, and services that are up."""
    found = [
        wrapped(f"runs: {e.name} {value(e.version)} on port {value(e.port)} (pid {value(e.pid)}), {value(e.model)}")
        for e in report.engines or []
    ]
    up = [s.name.removesuffix(".service") for s in report.services or [] if s.active == "active"]
    return found + ([wrapped(f"services up: {', '.join(up)}")] if up else [])


def versions(report: MachineReport) -> list[str]:
    """Versions that are known, in one paragraph."""
    named = report.software.model_dump(exclude={"packages"}, exclude_none=True)
    packages = report.software.packages or {}
    chosen = ("torch", "sglang", "vllm", "sgl-kernel", "flashinfer-python", "triton", "transformers")
    named |= {name: packages[name] for name in chosen if name in packages}
    text = ", ".join(f"{name.replace('_', ' ')} {version}" for name, version in named.items())
    return [wrapped(f"versions: {text}")] if text else []


def absent(report: MachineReport) -> list[str]:
    """What was looked for and is not known, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, source in sorted(report.sources.items()):
        if source.startswith("absent"):
            reasons.setdefault(source.partition(": ")[2], []).append(name)
    return [wrapped(f"not known: {', '.join(names)} ({why})") for why, names in reasons.items()]


def table(heading: list[str], rows: list[list[str]], total: int) -> list[str]:
    """Columns as wide as their widest cell, two blanks between; says how many rows are left out."""
    widths = [max(len(row[place]) for row in [heading, *rows]) for place in range(len(heading))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [heading, *rows]]
    return text + ([f"and {total - len(rows)} more (--json has all)"] if total > len(rows) else [])


def wrapped(text: str) -> str:
    """A paragraph within the width, its further lines indented."""
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def link(gpu: Gpu) -> str:
    """ "5x16/5x16": generation and width, now and at most."""
    pcie = gpu.pcie
    if (pcie.gen, pcie.width, pcie.max_gen, pcie.max_width) == (None,) * 4:
        return "-"
    return f"{value(pcie.gen)}x{value(pcie.width)}/{value(pcie.max_gen)}x{value(pcie.max_width)}"


def runs(numbers: list[int]) -> str:
    """[0, 1, 2, 5] as "0-2,5"."""
    from appliance.cpu_list import as_text

    return as_text(set(numbers)) if numbers else ""


def shortened(text: str, most: int) -> str:
    """`text`, cut in the middle to `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}...{text[len(text) - (most - most // 2 - 2) :]}"


def value(fact: object) -> str:
    """A fact, or "-"."""
    return "-" if fact is None else str(fact)


def number(fact: float | None) -> str:
    """A number without needless digits, or "-"."""
    return "-" if fact is None else f"{fact:.0f}"


def gib(mib: int | None) -> str:
    """MiB as GiB, or "-"."""
    return "-" if mib is None else f"{mib / 1024:.0f}"


def bytes_as_gib(size: int | None) -> str:
    """Bytes as GiB, or "-"."""
    return "-" if size is None else f"{size / 2**30:.0f}"
