"""Two records side by side: which figures differ beyond their noise, and what else is unlike.

Welch's t-test (unequal variances) over the repetitions of a cell, two-sided, and over all figures of a comparison the
false discovery rate held at 5 % (Benjamini and Hochberg 1995). Three repetitions are few: a difference that is
not found may be there all the same, and the table says how large one would have to be.
"""

import math
from dataclasses import dataclass
from statistics import mean

from appliance.bench.figures import FIGURES, values
from appliance.documents import BenchRecord, Cell
from appliance.documents.compare import ComparedFigure, Comparison
from appliance.errors import InputError

FALSE_DISCOVERIES = 0.05
LEAST_REPETITIONS = 2
COMPARED = ("output tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "goodput", "energy")


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
            raise InputError(f"{name} is unstamped ({', '.join(record.stamp.missing)} not known); expected a stamped one")
    if base.simulated != other.simulated:
        raise InputError("one record is simulated and the other measured; expected two of a kind")
    pairs = pairs_of(base, other)
    if not pairs:
        raise InputError("the records share no cell (topology, workload, lengths, load); expected at least one")
    chances = [chance(pair.before, pair.after) for pair in pairs]
    adjusted = false_discovery(chances)
    return Comparison(
        base=described(base),
        other=described(other),
        unlike=unlike(base, other),
        threshold=threshold,
        test="Welch's t-test over repetitions, false discovery rate 5 % (Benjamini-Hochberg)",
        figures=[figure(pair, p, threshold) for pair, p in zip(pairs, adjusted, strict=True)],
        only_in_base=only_in(base, other),
        only_in_other=only_in(other, base),
    )


def described(record: BenchRecord) -> str:
    """A record in one line."""
    gpus = {gpu.name or "a GPU" for gpu in record.machine.gpus}
    device = f"{len(record.machine.gpus)} x {', '.join(sorted(gpus))}" if gpus else record.machine.cpu_model or "CPU"
    return f"{record.date}, {device}, sglang {record.engine.version}"


def unlike(base: BenchRecord, other: BenchRecord) -> list[str]:
    """What differs besides the figures, in words: without these lines two records are of one configuration."""

    def gpus(record: BenchRecord) -> str:
        return ", ".join(gpu.name or "?" for gpu in record.machine.gpus) or "none"

    pairs = {
        "GPUs": (gpus(base), gpus(other)),
        "CPU": (base.machine.cpu_model, other.machine.cpu_model),
        "driver": (base.stamp.driver, other.stamp.driver),
        "power limits": (base.stamp.power_limits_w, other.stamp.power_limits_w),
        "peer to peer": (base.stamp.peer_to_peer, other.stamp.peer_to_peer),
        "closure": (base.stamp.closure, other.stamp.closure),
        "appliance": (base.appliance_version, other.appliance_version),
        "load tool": (f"{base.load_tool} {base.load_tool_version}", f"{other.load_tool} {other.load_tool_version}"),
        "model": (base.model.path, other.model.path),
    }
    names = base.stamp.versions.keys() | other.stamp.versions.keys()
    pairs |= {name: (base.stamp.versions.get(name), other.stamp.versions.get(name)) for name in sorted(names)}
    for topology in base.topologies.keys() & other.topologies.keys():
        plans = base.topologies[topology].plan_identity, other.topologies[topology].plan_identity
        pairs[f"plan of {topology}"] = tuple(identity[:12] for identity in plans)
    return [f"{name}: {one} / {two}" for name, (one, two) in pairs.items() if one != two]


def pairs_of(base: BenchRecord, other: BenchRecord) -> list[Pair]:
    """The figures of all cells that both records have."""
    there = {(cell.topology, cell.workload.key()): cell for cell in other.cells}
    found = []
    for cell in base.cells:
        match = there.get((cell.topology, cell.workload.key()))
        for name in COMPARED if match else ():
            before, after = values(name, cell.repetitions), values(name, match.repetitions)
            if before and after:
                found.append(Pair(cell, name, before, after))
    return found


def only_in(record: BenchRecord, other: BenchRecord) -> list[str]:
    """Cells that the other record has not, in words."""
    there = {(cell.topology, cell.workload.key()) for cell in other.cells}
    return [
        f"{cell.topology}: {cell.workload.words()}"
        for cell in record.cells
        if (cell.topology, cell.workload.key()) not in there
    ]


def chance(before: list[float], after: list[float]) -> float | None:
    """How likely so large a difference is by chance; None where one side was measured once: nothing can be said."""
    if min(len(before), len(after)) < LEAST_REPETITIONS:
        return None
    if len(set(before)) == 1 and len(set(after)) == 1:
        return 1.0 if before[0] == after[0] else 0.0
    from scipy.stats import ttest_ind

    return float(ttest_ind(before, after, equal_var=False).pvalue)


def false_discovery(chances: list[float | None]) -> list[float | None]:
    """The chances, adjusted for how many there are."""
    known = [p for p in chances if p is not None]
    if not known:
        return chances
    from scipy.stats import false_discovery_control

    adjusted = iter(false_discovery_control(known))
    return [None if p is None else float(next(adjusted)) for p in chances]


def figure(pair: Pair, p: float | None, threshold: float) -> ComparedFigure:
    """One figure compared."""
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
        chance=None if p is None else round(p, 5),
        verdict="not comparable" if p is None else verdict,
        regression=beyond_noise and worse > threshold,
    )
