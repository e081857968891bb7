"""Two records side by side: which figures differ beyond their noise, and what else is unlike.

Welch's t-test (unequal variances) over the repetitions of a cell, two-sided, and over all figures of a comparison the
false discovery rate held at 5 % (Benjamini and Hochberg 1995). A permutation test of three repetitions against three
never comes below a chance of 10 %. Three are few all the same: a difference that is not found may be there, and the
half-width of the change's 95 % interval says how large it could be.
"""

import hashlib
import math
from dataclasses import dataclass
from statistics import mean

from appliance.bench.figures import FIGURES, values
from appliance.documents import BenchRecord, Cell
from appliance.documents.compare import ComparedFigure, Comparison
from appliance.errors import InputError

FALSE_DISCOVERIES = 0.05
LEAST_REPETITIONS = 2
COMPARED = (
    "output tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "goodput", "energy", "acceptance length",
    "KV transfer", "failed",
)  # fmt: skip


@dataclass(frozen=True)
class Noise:
    """What the repetitions say of a difference of means."""

    chance: float
    """How likely so large a one is without any cause."""
    half_width: float
    """Of its 95 % confidence interval, in the figure's unit."""


@dataclass(frozen=True)
class Pair:
    """The same figure of the same cell in two records."""

    cell: Cell
    figure: str
    before: list[float]
    after: list[float]


def compare(base: BenchRecord, other: BenchRecord, threshold: float) -> Comparison:
    """`other` against `base`. A regression: worse by more than `threshold` (a share) and beyond noise.

    Raises InputError for records that cannot be compared: unstamped, one of them simulated, or without a common cell.
    """
    for name, record in (("the first record", base), ("the second record", other)):
        if not record.stamped():
            raise InputError(
                f"{name} is unstamped ({', '.join(record.stamp.missing)} not known); expected a stamped one"
            )
    if base.simulated != other.simulated:
        raise InputError("one record is simulated and the other measured; expected two of a kind")
    pairs = pairs_of(base, other)
    if not pairs:
        raise InputError("the records share no cell (topology, workload, lengths, load); expected at least one")
    noises = [noise(pair.before, pair.after) for pair in pairs]
    adjusted = false_discovery([found and found.chance for found in noises])
    return Comparison(
        simulated=base.simulated,
        base=described(base),
        other=described(other),
        unlike=unlike(base, other),
        threshold=threshold,
        test="Welch's t-test over repetitions, false discovery rate 5 % (Benjamini-Hochberg)",
        figures=[figure(*each, threshold) for each in zip(pairs, noises, adjusted, strict=True)],
        only_in_base=only_in(base, other),
        only_in_other=only_in(other, base),
    )


def described(record: BenchRecord) -> str:
    """A record in one line."""
    gpus = {gpu.name or "a GPU" for gpu in record.machine.gpus}
    device = f"{len(record.machine.gpus)} x {', '.join(sorted(gpus))}" if gpus else record.machine.cpu_model or "CPU"
    words = [record.date, device, f"sglang {record.engine.version}"]
    words += [] if record.complete else ["not complete"]
    return ", ".join((["SIMULATED"] if record.simulated else []) + words)


def unlike(base: BenchRecord, other: BenchRecord) -> list[str]:
    """What differs besides the figures, in words: without these lines two records are of one configuration."""

    def gpus(record: BenchRecord) -> str:
        return ", ".join(gpu.name or "?" for gpu in record.machine.gpus) or "none"

    common = keys(base) & keys(other)

    def asked(record: BenchRecord, what: str) -> str:
        found = {getattr(cell.workload, what) for cell in record.cells if key(cell) in common}
        return "; ".join(sorted("none" if each is None else str(each) for each in found))

    pairs = {
        "machine": (base.machine.hostname, other.machine.hostname),
        "kernel": (base.machine.kernel, other.machine.kernel),
        "GPUs": (gpus(base), gpus(other)),
        "CPU": (base.machine.cpu_model, other.machine.cpu_model),
        "driver": (base.stamp.driver, other.stamp.driver),
        "power limits": (base.stamp.power_limits_w, other.stamp.power_limits_w),
        "peer to peer": (base.stamp.peer_to_peer, other.stamp.peer_to_peer),
        "closure": (base.stamp.closure, other.stamp.closure),
        "appliance": (base.appliance_version, other.appliance_version),
        "load tool": (f"{base.load_tool} {base.load_tool_version}", f"{other.load_tool} {other.load_tool_version}"),
        "model": (base.model.path, other.model.path),
        "model's revision": (base.model.revision, other.model.revision),
        "model's files": (files(base), files(other)),
        "SLO": (asked(base, "slo"), asked(other, "slo")),
        "requests of a repetition": (asked(base, "requests"), asked(other, "requests")),
        "starts": (base.asked.rounds, other.asked.rounds),
    }
    names = base.stamp.versions.keys() | other.stamp.versions.keys()
    pairs |= {name: (base.stamp.versions.get(name), other.stamp.versions.get(name)) for name in sorted(names)}
    for topology in base.topologies.keys() & other.topologies.keys():
        plans = base.topologies[topology].plan_identity, other.topologies[topology].plan_identity
        pairs[f"plan of {topology}"] = tuple(identity[:12] for identity in plans)
    return [f"{name}: {one} / {two}" for name, (one, two) in pairs.items() if one != two]


def files(record: BenchRecord) -> str:
    """The model's files in a word that differs when they do: names, sizes, and hashes where those are known."""
    lines = sorted(f"{file.name} {file.size} {file.sha256}" for file in record.model.files)
    return f"{len(lines)} files, {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}"


def pairs_of(base: BenchRecord, other: BenchRecord) -> list[Pair]:
    """The figures of all cells that both records have."""
    there = {key(cell): cell for cell in other.cells}
    found = []
    for cell in base.cells:
        match = there.get(key(cell))
        for name in COMPARED if match else ():
            before, after = values(name, cell.repetitions), values(name, match.repetitions)
            if before and after and meaningful(name, cell, match, before + after):
                found.append(Pair(cell, name, before, after))
    return found


def meaningful(name: str, cell: Cell, match: Cell, seen: list[float]) -> bool:
    """Whether there is anything to compare: goodput under one objective, failures where something failed."""
    if name == "goodput":
        return cell.workload.slo == match.workload.slo
    return name != "failed" or any(seen)


def key(cell: Cell) -> tuple:
    """What two cells must share to be compared."""
    return cell.topology, cell.workload.key()


def keys(record: BenchRecord) -> set[tuple]:
    """The keys of all its cells."""
    return {key(cell) for cell in record.cells}


def only_in(record: BenchRecord, other: BenchRecord) -> list[str]:
    """Cells that the other record has not, in words."""
    there = keys(other)
    return [f"{cell.topology}: {cell.workload.words()}" for cell in record.cells if key(cell) not in there]


def noise(before: list[float], after: list[float]) -> Noise | None:
    """The noise of a difference; None where one side was measured once: nothing can be said."""
    if min(len(before), len(after)) < LEAST_REPETITIONS:
        return None
    if len(set(before)) == 1 and len(set(after)) == 1:
        return Noise(chance=1.0 if before[0] == after[0] else 0.0, half_width=0.0)
    from scipy.stats import ttest_ind

    found = ttest_ind(before, after, equal_var=False)
    interval = found.confidence_interval(0.95)
    return Noise(chance=float(found.pvalue), half_width=float(interval.high - interval.low) / 2)


def false_discovery(chances: list[float | None]) -> list[float | None]:
    """The chances, adjusted for how many there are."""
    known = [p for p in chances if p is not None]
    if not known:
        return chances
    from scipy.stats import false_discovery_control

    adjusted = iter(false_discovery_control(known))
    return [None if p is None else float(next(adjusted)) for p in chances]


def figure(pair: Pair, found: Noise | None, p: float | None, threshold: float) -> ComparedFigure:
    """One figure compared. p: the chance, adjusted."""
    before, after = mean(pair.before), mean(pair.after)
    change = (after - before) / before if before else (0.0 if after == before else math.inf)
    worse = -change if FIGURES[pair.figure].better == "higher" else change
    beyond_noise = p is not None and p < FALSE_DISCOVERIES
    verdict = "same" if not beyond_noise else "worse" if worse > 0 else "better"
    return ComparedFigure(
        topology=pair.cell.topology,
        workload=pair.cell.workload,
        figure=pair.figure,
        unit=FIGURES[pair.figure].unit,
        before=round(before, 4),
        after=round(after, 4),
        change=round(change, 4) if math.isfinite(change) else None,
        noise=round(found.half_width / abs(before), 4) if found is not None and before else None,
        chance=None if p is None else round(p, 5),
        verdict="not comparable" if p is None else verdict,
        regression=beyond_noise and worse > threshold,
    )
