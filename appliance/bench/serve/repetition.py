"""One repetition of a workload against a running plan: caches emptied, the load, and what the engine counted of it."""

import time
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime

from appliance.bench.serve.energy import energy_j
from appliance.bench.serve.matrix import BYTES
from appliance.documents import Distribution, KvTransfers, Plan, Repetition, Workload
from appliance.engines.sglang.client import SglangClient
from appliance.engines.sglang.load import load, long_requests
from appliance.engines.sglang.metrics import WorkerMetrics
from appliance.errors import CheckFailed

IDLE_PATIENCE_S = 60.0
CACHED_SHARE, CACHED_TOKENS = 0.05, 64
"""What a prefix cache may have given: such a share of the input, or so many tokens a request (a chat template's)."""
LONG_OUTPUT = 16
"""Output of the long requests in tail isolation: they are there for their prefill."""


def measure(plan: Plan, workload: Workload, seed: int, vocabulary: int | None) -> Repetition:
    """Empty the caches, wait until nothing runs, run the load once, and count. vocabulary: the model's, in tokens.

    Raises CheckFailed where other requests run before or meanwhile, where the prefix cache gave what it was not asked
    for, and where the load generator fails.
    """
    clients = {worker.name: SglangClient(plan.url(worker.port)) for worker in plan.workers}
    require_idle(clients)
    for client in clients.values():
        emptied(client)
    gpus = sorted({gpu for worker in plan.workers for gpu in worker.gpus})
    before, joules = metrics(clients), energy_j(gpus)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with noise(plan, workload, seed, clients):
        noisy = metrics(clients)
        result = load(plan, workload, seed)
        after = metrics(clients)
    spent = energy_j(gpus)
    spent = round(spent - joules, 1) if spent is not None and joules is not None else None
    # the long requests' own tokens are counted by the engine too: of what was counted only the load's answers are known
    counted = grown(plan, noisy if workload.long_input_tokens else before, after)
    repetition = repetition_of(
        result, counted, workload, started=started, energy=spent, acceptance=acceptance_length(plan, clients)
    )
    require_alone(workload, repetition, counted)
    require_uncached(workload, repetition, vocabulary)
    return repetition


def noise(plan: Plan, workload: Workload, seed: int, clients: dict[str, SglangClient]):
    """In tail isolation: long requests, one after the other, while the short ones are measured."""
    if workload.long_input_tokens is None:
        return nullcontext()

    def is_busy() -> bool:
        return any(found.busy for found in metrics(clients).values())

    return long_requests(plan, workload.long_input_tokens, LONG_OUTPUT, seed + 500_000, is_busy)


def metrics(clients: dict[str, SglangClient]) -> dict[str, WorkerMetrics]:
    """The counters of every worker, by name."""
    return {name: client.metrics() for name, client in clients.items()}


def require_idle(clients: dict[str, SglangClient], patience_s: float = IDLE_PATIENCE_S) -> None:
    """Wait until no worker has a request. Raises CheckFailed: figures under other traffic are 20 to 47 % low."""
    deadline = time.monotonic() + patience_s
    while busy := {name: found.busy for name, found in metrics(clients).items() if found.busy}:
        if time.monotonic() > deadline:
            what = ", ".join(f"{name} has {count} requests" for name, count in busy.items())
            raise CheckFailed(f"not idle after {patience_s:.0f} s: {what}; expected no other traffic while measuring")
        time.sleep(0.2)


def emptied(client: SglangClient, patience_s: float = IDLE_PATIENCE_S) -> None:
    """Empty a prefix cache. An engine refuses that while it still lets go of a request: its gauges are behind."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return client.flush_cache()
        except CheckFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def grown(plan: Plan, before: dict[str, WorkerMetrics], after: dict[str, WorkerMetrics]) -> dict[str, dict[str, float]]:
    """What each counter has grown by, summed over the workers of each role."""
    found: dict[str, Counter] = {}
    for worker in plan.workers:
        counts = found.setdefault(worker.role, Counter())
        for field in WorkerMetrics.__dataclass_fields__:
            counts[field] += getattr(after[worker.name], field) - getattr(before[worker.name], field)
    return found


def repetition_of(
    result: dict,
    counted: dict[str, dict[str, float]],
    workload: Workload,
    started: str,
    energy: float | None = None,
    acceptance: float | None = None,
) -> Repetition:
    """A repetition from the generator's result line and the engine's counters of the same time.

    A stream that breaks off counts as a success to the generator: what an answer lacks of its asked length, where
    nothing may end it early, is a failure here.
    """

    def distribution(name: str) -> Distribution:
        parts = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
        return Distribution(**{field: round(result[f"{part}_{name}_ms"], 3) for field, part in parts.items()})

    lengths, errors = result["output_lens"], result["errors"]
    failures = Counter(first_line(error) for error in errors if error)
    broken = sum(length < workload.output_tokens for length, error in zip(lengths, errors, strict=True) if not error)
    if broken and workload.name != "structured output":
        failures["the answer broke off"] += broken
    first = counted.get("prefill") or counted.get("aggregated") or {}
    mixed = workload.long_input_tokens is not None
    input_tokens = workload.input_tokens * len(lengths) if mixed else round(first.get("prompt_tokens", 0))
    output_tokens = sum(lengths)
    duration = result["duration"]
    return Repetition(
        started=started,
        requests=len(lengths),
        completed=len(lengths) - sum(failures.values()),
        failures=dict(failures),
        input_tokens=input_tokens,
        cached_tokens=round(first.get("cached_tokens", 0)),
        output_tokens=output_tokens,
        duration_s=round(duration, 3),
        input_tokens_per_s=round(input_tokens / duration, 2),
        output_tokens_per_s=round(output_tokens / duration, 2),
        ttft_ms=distribution("ttft"),
        tpot_ms=distribution("tpot"),
        itl_ms=distribution("itl"),
        e2e_ms=distribution("e2e_latency"),
        goodput_per_s=round(result["request_goodput"], 4) if "request_goodput" in result else None,
        acceptance_length=acceptance,
        kv_transfers=transfers(counted.get("prefill")),
        energy_j=energy,
    )


def first_line(error: str) -> str:
    """The last line of a traceback, or the first of a message: one that is the same for failures that are alike."""
    lines = [line for line in error.strip().splitlines() if line.strip()]
    return (lines[-1] if lines and lines[0].startswith("Traceback") else lines[0] if lines else "no word")[:200]


def transfers(counted: dict[str, float] | None) -> KvTransfers | None:
    """What prefill sent; None without a prefill worker."""
    if counted is None:
        return None
    count, speeds = round(counted["kv_transfers"]), counted["kv_speeds"]
    return KvTransfers(
        transfers=count,
        bytes=round(counted["kv_bytes"]),
        latency_ms=round(counted["kv_latency_ms"] / count, 3) if count else None,
        gb_s=round(counted["kv_speed_gb_s"] / speeds, 4) if speeds else None,
    )


def acceptance_length(plan: Plan, clients: dict[str, SglangClient]) -> float | None:
    """Tokens a step of speculative decoding, as the workers that decode report it; None without speculation."""
    found = []
    for worker in plan.workers:
        if worker.role != "prefill" and any("speculative" in word for word in worker.args):
            states = clients[worker.name].server_info().get("internal_states") or [{}]
            found += [length for state in states if (length := state.get("avg_spec_accept_length"))]
    return round(sum(found) / len(found), 3) if found else None


def require_alone(workload: Workload, repetition: Repetition, counted: dict[str, dict[str, float]]) -> None:
    """Raise CheckFailed where the engine answered more requests than the load sent: somebody else's, in the same time.

    In tail isolation the long requests are counted too, and their number is nobody's to know: nothing is said there.
    """
    answered = round(sum(counts.get("requests", 0) for role, counts in counted.items() if role != "prefill"))
    if workload.name != "tail isolation" and answered > repetition.requests:
        raise CheckFailed(
            f"{workload.words()}: the engine answered {answered} requests, and the load sent {repetition.requests}; "
            "expected no other traffic while measuring"
        )


def require_uncached(workload: Workload, repetition: Repetition, vocabulary: int | None) -> None:
    """Raise CheckFailed where a prefix cache has flattered a workload whose prompts share nothing.

    Turns share by intent; in tail isolation the engine's count holds the long requests too. In a vocabulary of single
    bytes, as the demo's, half of all random tokens are no text, and many prompts begin alike. It is only recorded.
    """
    if workload.name in ("multi-turn", "tail isolation") or (vocabulary or BYTES) < BYTES:
        return
    if repetition.cached_tokens > max(CACHED_SHARE * repetition.input_tokens, CACHED_TOKENS * repetition.requests):
        raise CheckFailed(
            f"{workload.words()}: {repetition.cached_tokens} of {repetition.input_tokens} prompt tokens came from a "
            "prefix cache; expected next to none, since all prompts differ"
        )
