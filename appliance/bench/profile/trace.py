"""From a trace of torch's profiler (Kineto) to TraceProfiles: one a GPU in it, or one of the CPU's operators."""

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from appliance.bench.profile.classes import class_of
from appliance.bench.profile.events import EVENTS, read
from appliance.bench.profile.intervals import Intervals, idle, own_times, span
from appliance.bench.profile.occupancy import blocks_per_sm, occupancy
from appliance.documents import ClassTime, CopyTime, Gaps, ProfiledGpu, ProfiledKernel, StepCount, TraceProfile
from appliance.errors import InputError

MOST_EVENTS = 4_000_000
"""Of a kind: about 200 MB of memory. A few decode steps are tens of thousands."""
MOST_NAMES = 200_000
WORTH_NAMING = 0.01
"""Share of time from which a kernel that leaves the GPU empty is flagged."""
COPIES = ("gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver")
USED = ("registers per thread", "shared memory")
STEP = "step["
OPERATOR = "operator"
"""Class of what is no kernel."""


class Device:
    """What one GPU ran."""

    def __init__(self):
        self.intervals = Intervals()
        self.kernels: dict[tuple, list] = {}
        """By name and geometry: count, total µs."""
        self.copies: dict[str, list] = {}
        """By kind: count, total µs, bytes."""


class Trace:
    """What is kept of a trace while it is read."""

    def __init__(self, path: Path):
        self.path = path
        self.devices: defaultdict[int, Device] = defaultdict(Device)
        self.threads: defaultdict[str, Intervals] = defaultdict(Intervals)
        self.operators: dict[str, int] = {}
        self.operator_events = 0
        self.kernel_events = 0
        self.launched: dict[int, float] = {}
        """By correlation: when the launch had returned, µs."""
        self.steps: Counter[str] = Counter()
        self.properties: dict[int, dict] = {}
        self.rank: int | None = None
        self.simulated = False

    def header(self, name: str, value: Any) -> None:
        """A member of the trace beside its events."""
        if name == "deviceProperties" and isinstance(value, list):
            self.properties = {row["id"]: row for row in value if isinstance(row, dict) and is_count(row.get("id"))}
        elif name == "distributedInfo" and isinstance(value, dict) and is_count(value.get("rank")):
            self.rank = value["rank"]
        elif name == "simulated":
            self.simulated = bool(value)

    def event(self, event: Any) -> None:
        """One event; what has no time, or is of no kind that counts here, is passed over."""
        if not isinstance(event, dict) or event.get("ph") != "X" or not isinstance(event.get("name"), str):
            return
        start, duration = number(event.get("ts")), number(event.get("dur"))
        if start is None or duration is None or duration < 0:
            return
        args = event.get("args") if isinstance(event.get("args"), dict) else {}
        category, name = event.get("cat"), event["name"]
        if category == "kernel" or category in COPIES:
            self.on_gpu(category, name, start, duration, args)
        elif category == "cpu_op":
            self.operator(name, start, duration, f"{event.get('pid')}/{event.get('tid')}")
        elif category in LAUNCHES and "correlation" in args and is_count(args["correlation"]):
            if len(self.launched) < MOST_EVENTS:
                self.launched[args["correlation"]] = start + duration
        elif category == "user_annotation" and name.startswith(STEP) and len(self.steps) < MOST_NAMES:
            self.steps[name] += 1

    def on_gpu(self, category: str, name: str, start: float, duration: float, args: dict) -> None:
        """A kernel, a copy or a fill."""
        self.kernel_events += 1
        self.require(self.kernel_events <= MOST_EVENTS, f"more than {MOST_EVENTS} kernels")
        device = self.devices[args["device"] if is_count(args.get("device")) else 0]
        self.require(len(self.devices) <= 1024, "more than 1024 devices")
        correlation = args.get("correlation")
        device.intervals.add(start, duration, correlation if is_count(correlation) and correlation < 2**63 else -1)
        if category in COPIES:
            row = device.copies.setdefault(name, [0, 0.0, 0])
            row[2] += args["bytes"] if is_count(args.get("bytes")) else 0
        else:
            geometry = (product(args.get("grid")), product(args.get("block")))
            used = tuple(args[key] if is_count(args.get(key)) else None for key in USED)
            row = device.kernels.setdefault((name, *geometry, *used), [0, 0.0])
        row[0] += 1
        row[1] += duration
        different = len(device.kernels) + len(device.copies)
        self.require(different <= MOST_NAMES, f"more than {MOST_NAMES} different kernels")

    def operator(self, name: str, start: float, duration: float, thread: str) -> None:
        """A CPU operator. They are kept until it is known that there is no kernel."""
        self.operator_events += 1
        if self.kernel_events or self.operator_events > MOST_EVENTS:
            self.threads.clear()
            return
        key = self.operators.setdefault(name, len(self.operators))
        self.threads[thread].add(start, duration, key)

    def require(self, holds: bool, what: str) -> None:
        """Raise InputError that tells what is too many."""
        if not holds:
            raise InputError(f"{self.path}: {what}; expected a few decode steps: profile fewer")


def profiles(path: Path) -> list[TraceProfile]:
    """The profile of each GPU in the trace at `path`; of the CPU's operators where it holds no kernel.

    Raises InputError where it is no trace, is cut short, or holds neither kernels nor operators.
    """
    trace = Trace(path)
    for name, value in read(path):
        if name == EVENTS:
            trace.event(value)
        else:
            trace.header(name, value)
    shared = {
        "file": path.name,
        "rank": trace.rank,
        "simulated": trace.simulated,
        "steps": [StepCount(name=name, count=count) for name, count in trace.steps.most_common()],
    }
    if trace.devices:
        return [of_gpu(trace, index, trace.devices[index], shared) for index in sorted(trace.devices)]
    trace.require(trace.operator_events <= MOST_EVENTS, f"more than {MOST_EVENTS} operators")
    if not trace.threads:
        raise InputError(f"{path}: the trace holds no kernel and no operator; expected a trace taken while steps ran")
    return [of_cpu(trace, shared)]


def of_gpu(trace: Trace, index: int, device: Device, shared: dict) -> TraceProfile:
    """The profile of the GPU with that index."""
    gpu = gpu_of(trace.properties.get(index))
    total = sum(row[1] for row in [*device.kernels.values(), *device.copies.values()])
    kernels = [kernel(key, row, total, gpu) for key, row in device.kernels.items()]
    copies = [
        CopyTime(kind=kind, count=count, total_us=rounded(us), bytes=moved or None)
        for kind, (count, us, moved) in by_time(device.copies)
    ]
    classes = of_classes([(one.kernel_class, one.count, one.total_us) for one in kernels], copies, total)
    gaps = gaps_of(device.intervals, trace.launched)
    wall = span(device.intervals)
    return TraceProfile(
        **shared,
        counts="kernels",
        device=index,
        gpu=gpu,
        wall_us=rounded(wall),
        busy_us=rounded(max(0.0, wall - gaps.total_us)),
        classes=classes,
        kernels=sorted(kernels, key=lambda one: -one.total_us),
        gaps=gaps,
        copies=copies,
        communication_share=next((one.share for one in classes if one.kernel_class == "communication"), 0.0),
    )


def kernel(key: tuple, row: list, total: float, gpu: ProfiledGpu | None) -> ProfiledKernel:
    """A kernel at one geometry; `total`: µs of all kernels and copies."""
    name, blocks, threads, registers, shared_bytes = key
    count, us = row
    part = share(us, total)
    resident = blocks_per_sm(gpu, threads, registers, shared_bytes) if gpu and threads else None
    return ProfiledKernel(
        name=name,
        kernel_class=class_of(name),
        count=count,
        total_us=rounded(us),
        mean_us=rounded(us / count),
        share=part,
        blocks=blocks,
        threads=threads,
        registers=registers,
        shared_bytes=shared_bytes,
        blocks_per_sm=resident,
        waves=rounded(blocks / (resident * gpu.multiprocessors)) if resident and blocks is not None else None,
        occupancy=occupancy(gpu, threads, resident) if gpu and threads else None,
        leaves_gpu_empty=bool(gpu and blocks is not None and blocks < gpu.multiprocessors and part >= WORTH_NAMING),
    )


def of_classes(kernels: list[tuple[str, int, float]], copies: list[CopyTime], total: float) -> list[ClassTime]:
    """Time by class; copies and fills are of class "memory"."""
    found: dict[str, list] = {}
    for name, count, us in [*kernels, *(("memory", copy.count, copy.total_us) for copy in copies)]:
        row = found.setdefault(name, [0, 0.0])
        row[0] += count
        row[1] += us
    return [
        ClassTime(kernel_class=name, count=count, total_us=rounded(us), share=share(us, total))
        for name, (count, us) in by_time(found)
    ]


def gaps_of(intervals: Intervals, launched: dict[int, float]) -> Gaps:
    """The time in which nothing ran, by what it waited for: see the document's Gaps."""
    wall = span(intervals)
    count, total, longest = 0, 0.0, 0.0
    waited = {"launch": 0.0, "queued": 0.0, "unknown": 0.0}
    for begin, end, correlation in idle(intervals):
        count, total, longest = count + 1, total + (end - begin), max(longest, end - begin)
        returned = launched.get(correlation)
        if returned is None:
            waited["unknown"] += end - begin
        else:
            late = min(max(returned - begin, 0.0), end - begin)  # after the launch returned it is the GPU's own time
            waited["launch"] += late
            waited["queued"] += end - begin - late
    return Gaps(
        count=count,
        total_us=rounded(total),
        share=share(total, wall),
        longest_us=rounded(longest),
        launch_us=rounded(waited["launch"]),
        launch_share=share(waited["launch"], wall),
        queued_us=rounded(waited["queued"]),
        unknown_us=rounded(waited["unknown"]),
    )


def of_cpu(trace: Trace, shared: dict) -> TraceProfile:
    """The CPU's operators by their own time, over all threads."""
    names = list(trace.operators)
    rows: dict[str, list] = {}
    for thread in trace.threads.values():
        for key, own in own_times(thread):
            row = rows.setdefault(names[key], [0, 0.0])
            row[0] += 1
            row[1] += own
    total = sum(us for _, us in rows.values())
    busiest = max(trace.threads.values(), key=span)
    wall = span(busiest)
    asleep = sum(end - begin for begin, end, _ in idle(busiest))
    return TraceProfile(
        **shared,
        counts="operators",
        wall_us=rounded(wall),
        busy_us=rounded(max(0.0, wall - asleep)),
        classes=of_classes([(OPERATOR, count, us) for count, us in rows.values()], [], total),
        kernels=[
            ProfiledKernel(
                name=name,
                kernel_class=OPERATOR,
                count=count,
                total_us=rounded(us),
                mean_us=rounded(us / count),
                share=share(us, total),
            )
            for name, (count, us) in by_time(rows)
        ],
    )


def gpu_of(row: dict | None) -> ProfiledGpu | None:
    """The GPU of a trace's deviceProperties; None where it does not say what counts."""
    if row is None or not isinstance(row.get("name"), str):
        return None
    figures = {key: row[key] for key in row if is_count(row[key])}
    if not {"computeMajor", "computeMinor", "numSms"} <= figures.keys() or figures["numSms"] < 1:
        return None
    return ProfiledGpu(
        name=row["name"],
        compute_capability=f"{figures['computeMajor']}.{figures['computeMinor']}",
        multiprocessors=figures["numSms"],
        threads_per_sm=figures.get("maxThreadsPerMultiprocessor") or None,
        registers_per_sm=figures.get("regsPerMultiprocessor") or None,
        shared_bytes_per_sm=figures.get("sharedMemPerMultiprocessor") or None,
    )


def by_time(rows: dict[str, list]) -> list[tuple[str, list]]:
    """Rows of (count, µs, ...) by µs, the largest first."""
    return sorted(rows.items(), key=lambda item: -item[1][1])


def number(value: Any) -> float | None:
    """A finite time, also where it is written as text, as newer profilers do; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < 1e18 else None


def is_count(value: Any) -> bool:
    """Whether `value` is a count that a profiler may have written."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def product(sides: Any) -> int | None:
    """Blocks of a grid or threads of a block, from their sides."""
    if not isinstance(sides, list) or not sides or not all(is_count(side) and side < 2**32 for side in sides[:4]):
        return None
    found = math.prod(sides[:3])
    return found if 0 < found < 2**63 else None


def share(part: float, whole: float) -> float:
    """Part of a whole, within 0 and 1; 0 of nothing."""
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def rounded(us: float) -> float:
    """Microseconds to a nanosecond."""
    return round(us, 3)
