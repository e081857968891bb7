"""Whether a pair really disaggregates: KV crossed from prefill to decode, and decode computed no prompt."""

from appliance.documents import Check, Plan
from appliance.engines.sglang.client import SglangClient
from appliance.engines.sglang.metrics import WorkerMetrics


def worker_metrics(plan: Plan) -> dict[str, WorkerMetrics]:
    """The counters of every worker by name. Raises CheckFailed when one cannot be read."""
    return {worker.name: SglangClient(plan.url(worker.port)).metrics() for worker in plan.workers}


def check_disaggregation(
    plan: Plan, before: dict[str, WorkerMetrics], after: dict[str, WorkerMetrics], requests: int
) -> list[Check]:
    """The checks of a pair after `requests` requests, from its counters before and after; none for other topologies."""
    prefill = [worker.name for worker in plan.workers if worker.role == "prefill"]
    decode = [worker.name for worker in plan.workers if worker.role == "decode"]
    if not prefill or not decode:
        return []

    def grown(names: list[str], counter: str) -> int:
        return sum(getattr(after[name], counter) - getattr(before[name], counter) for name in names)

    transfers, kv_bytes = grown(prefill, "kv_transfers"), grown(prefill, "kv_bytes")
    computed, computed_by_prefill = grown(decode, "prefilled_tokens"), grown(prefill, "prefilled_tokens")
    return [
        Check(
            name="KV cache crossed",
            passed=transfers >= requests and kv_bytes > 0,
            evidence=f"{transfers} transfers, {kv_bytes / 1e6:.1f} MB, for {requests} requests",
        ),
        Check(
            name="decode did not prefill",
            passed=computed == 0 and computed_by_prefill > 0,
            evidence=f"prompt tokens computed: {computed} by decode, {computed_by_prefill} by prefill",
        ),
    ]
