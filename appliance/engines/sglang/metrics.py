"""The counters of one SGLang server that verify and bench need, from its Prometheus text."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from appliance.documents import WorkerLoad

MIB = 1024 * 1024
BUSY = [
    "num_running_reqs", "num_queue_reqs", "num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs",
    "num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs",
]  # fmt: skip
"""Gauges of requests that a server has not finished with."""


@dataclass(frozen=True)
class WorkerMetrics:
    """Counters since the server's start, summed over its ranks; `busy` is of now. Zero: not counted yet."""

    prompt_tokens: int
    generation_tokens: int
    cached_tokens: int
    prefilled_tokens: int
    """Prompt tokens that this server computed itself: stays 0 on a decode worker that only receives KV."""
    kv_transfers: int
    kv_bytes: int
    """KV cache bytes that a prefill worker sent."""
    kv_latency_ms: float = 0.0
    """Sum over its transfers."""
    kv_speed_gb_s: float = 0.0
    """Sum of the engine's readings, of `kv_speeds` transfers."""
    kv_speeds: int = 0
    requests: int = 0
    """Requests that came to an end; probes of its health are not among them."""
    busy: int = 0
    """Requests that run or wait in any queue, now."""


def load_of(name: str, text: str) -> WorkerLoad:
    """What the worker called `name` is doing, from the text of /metrics."""
    gauges: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("sglang:"):
                key = sample.name.removeprefix("sglang:")
                # gauges of ranks are alike: each rank has its share of every request
                gauges[key] = max(gauges.get(key, 0.0), sample.value)
    counted = parse(text)
    return WorkerLoad(
        name=name,
        running=round(gauges.get("num_running_reqs", 0.0)),
        queued={key: round(gauges[key]) for key in BUSY[1:] if key in gauges},
        kv_use=round(gauges.get("token_usage", 0.0), 4),
        output_tokens_per_s=round(gauges.get("gen_throughput", 0.0), 2),
        prompt_tokens=counted.prompt_tokens,
        output_tokens=counted.generation_tokens,
        kv_transfers=counted.kv_transfers,
        kv_bytes=counted.kv_bytes,
        kv_latency_ms=round(counted.kv_latency_ms / counted.kv_transfers, 3) if counted.kv_transfers else None,
        kv_gb_s=round(counted.kv_speed_gb_s / counted.kv_speeds, 3) if counted.kv_speeds else None,
    )


def parse(text: str) -> WorkerMetrics:
    """Read the counters from the text of /metrics (names: SGLang 0.5.23, srt/observability)."""
    wanted: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            mode = sample.labels.get("mode")
            key = f"{sample.name}/{mode}" if mode else sample.name
            wanted[key] = wanted.get(key, 0.0) + sample.value

    def total(key: str) -> int:
        return round(wanted.get(f"sglang:{key}", 0.0))

    return WorkerMetrics(
        prompt_tokens=total("prompt_tokens_total"),
        generation_tokens=total("generation_tokens_total"),
        cached_tokens=total("cached_tokens_total"),
        prefilled_tokens=total("realtime_tokens_total/prefill_compute"),
        kv_transfers=total("kv_transfer_total_mb_count"),
        kv_bytes=round(wanted.get("sglang:kv_transfer_total_mb_sum", 0.0) * MIB),
        kv_latency_ms=wanted.get("sglang:kv_transfer_latency_ms_sum", 0.0),
        kv_speed_gb_s=wanted.get("sglang:kv_transfer_speed_gb_s_sum", 0.0),
        kv_speeds=total("kv_transfer_speed_gb_s_count"),
        requests=total("num_requests_total"),
        busy=sum(total(name) for name in BUSY),
    )
