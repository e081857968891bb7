"""Serving under load: SGLang's load generator against the plan's endpoint, one cell a concurrency."""

from collections.abc import Callable

from appliance.documents import Distribution, Plan, ServeCell
from appliance.engines.sglang.client import SglangClient
from appliance.engines.sglang.load import load


def measure(
    plan: Plan,
    concurrencies: list[int],
    requests_each: int,
    input_tokens: int,
    output_tokens: int,
    on_cell: Callable[[int], None] = lambda concurrency: None,
) -> list[ServeCell]:
    """Measure one cell a concurrency, with `requests_each` requests for each request in flight.

    Prompts are random and different in every cell, and prefix caches are emptied before each. Raises CheckFailed
    when the load generator fails. `on_cell` is told which concurrency is measured next.
    """
    cells = []
    for seed, concurrency in enumerate(concurrencies, start=1):
        on_cell(concurrency)
        clients = [SglangClient(plan.url(worker.port)) for worker in plan.workers if worker.role != "decode"]
        for worker in plan.workers:
            SglangClient(plan.url(worker.port)).flush_cache()
        before = sum(client.metrics().prompt_tokens for client in clients)
        result = load(plan, concurrency, concurrency * requests_each, input_tokens, output_tokens, seed)
        prompt_tokens = sum(client.metrics().prompt_tokens for client in clients) - before
        cells.append(cell(result, concurrency, concurrency * requests_each, prompt_tokens))
    return cells


def cell(result: dict, concurrency: int, requests: int, prompt_tokens: int) -> ServeCell:
    """A cell from the load generator's result; input tokens are the server's own count."""

    def distribution(name: str) -> Distribution:
        parts = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
        return Distribution(**{field: round(result[f"{part}_{name}_ms"], 3) for field, part in parts.items()})

    return ServeCell(
        concurrency=concurrency,
        requests=requests,
        completed=result["completed"],
        input_tokens=prompt_tokens,
        output_tokens=result["total_output_tokens"],
        duration_s=round(result["duration"], 3),
        output_tokens_per_s=round(result["output_throughput"], 2),
        ttft_ms=distribution("ttft"),
        tpot_ms=distribution("tpot"),
        itl_ms=distribution("itl"),
    )
