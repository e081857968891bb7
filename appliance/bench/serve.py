"""Serving under load: `sglang.benchmark.serving` against the plan's endpoint, one cell a concurrency."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from appliance.documents import Distribution, Plan, ServeCell
from appliance.engines.sglang.client import SglangClient
from appliance.engines.sglang.command import environment
from appliance.errors import CheckFailed
from appliance.launch.environment import without_proxies

TOOL = "sglang.benchmark.serving"
CELL_TIMEOUT_S = 600


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


def load(plan: Plan, concurrency: int, requests: int, input_tokens: int, output_tokens: int, seed: int) -> dict:
    """Run the load generator once and return its result. Raises CheckFailed with the end of its output."""
    with tempfile.TemporaryDirectory(prefix="appliance-bench-") as scratch:
        output = Path(scratch) / "result.jsonl"
        words = [sys.executable, "-W", "ignore", "-m", TOOL]
        words += ["--backend", "sglang-oai-chat", "--base-url", plan.endpoint()]
        words += ["--model", plan.model.path, "--served-model-name", plan.model.served_name]
        words += ["--dataset-name", "random-ids", "--random-range-ratio", "1.0"]
        words += ["--random-input-len", str(input_tokens), "--random-output-len", str(output_tokens)]
        words += ["--num-prompts", str(requests), "--max-concurrency", str(concurrency), "--warmup-requests", "0"]
        words += ["--seed", str(seed), "--disable-tqdm", "--output-file", str(output)]
        words += ["--pd-separated"] if plan.topology == "pd" else []
        env = without_proxies(os.environ) | environment(plan, plan.workers[0])
        env |= {"HF_HUB_OFFLINE": "1", "TMPDIR": scratch}
        try:
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=CELL_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{TOOL} at concurrency {concurrency} took longer than {CELL_TIMEOUT_S} s") from None
        if done.returncode != 0 or not output.exists():
            raise CheckFailed(f"{TOOL} ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
        return json.loads(output.read_text().splitlines()[-1])


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
