"""The figures of a cell: their names, units, and which way is better; and how repetitions come to them."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from appliance.documents import Figure, Repetition


@dataclass(frozen=True)
class Kind:
    """One figure: how to read it off a repetition (None: it has none), its unit, and its better direction."""

    of: Callable[[Repetition], float | None]
    unit: str
    better: str


def percentile(field: str, which: str) -> Callable[[Repetition], float | None]:
    """A percentile of a latency; None where no request came to an end, or none had a second token."""
    return lambda repetition: getattr(getattr(repetition, field), which) if repetition.completed else None


FIGURES: dict[str, Kind] = {
    "output tok/s": Kind(lambda repetition: repetition.output_tokens_per_s, "tok/s", "higher"),
    "input tok/s": Kind(lambda repetition: repetition.input_tokens_per_s, "tok/s", "higher"),
    "computed tok/s": Kind(
        lambda r: max(r.input_tokens - r.cached_tokens, 0) / r.duration_s if r.duration_s else None, "tok/s", "higher"
    ),
    **{
        f"{name} {which}": Kind(percentile(field, which), "ms", "lower")
        for name, field in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"), ("E2E", "e2e_ms"))
        for which in ("p50", "p99")
    },
    "goodput": Kind(lambda repetition: repetition.goodput_per_s, "requests/s", "higher"),
    "acceptance length": Kind(lambda repetition: repetition.acceptance_length, "tokens", "higher"),
    "KV transfer": Kind(lambda r: r.kv_transfers.latency_ms if r.kv_transfers else None, "ms", "lower"),
    "KV bandwidth": Kind(lambda r: r.kv_transfers.gb_s if r.kv_transfers else None, "GB/s", "higher"),
    "energy": Kind(
        lambda r: r.energy_j / r.output_tokens if r.energy_j is not None and r.output_tokens else None,
        "J/token",
        "lower",
    ),
    "failed": Kind(lambda repetition: float(repetition.requests - repetition.completed), "requests", "lower"),
}


def values(name: str, repetitions: list[Repetition]) -> list[float]:
    """The figure of each repetition that has it."""
    found = [FIGURES[name].of(repetition) for repetition in repetitions]
    return [value for value in found if value is not None]


def figures_of(repetitions: list[Repetition]) -> dict[str, Figure]:
    """Median, least and most of each figure that the repetitions have."""
    found = {name: values(name, repetitions) for name in FIGURES}
    return {
        name: Figure(median=round(median(each), 4), least=round(min(each), 4), most=round(max(each), 4))
        for name, each in found.items()
        if each
    }
