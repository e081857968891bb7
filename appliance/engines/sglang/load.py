"""SGLang's own load generator, `sglang.benchmark.serving`, run against a plan's front door.

AIPerf 0.13.0 was resolved as well, not run: it asks for some 60 packages more or at other releases, among them older
ones of psutil, rich and prometheus_client than the engine has. SGLang's generator knows goodput, turns and schemas.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.documents import Plan, Workload
from appliance.engines.sglang.command import environment
from appliance.errors import CheckFailed
from appliance.launch.environment import without_proxies

TOOL = "sglang.benchmark.serving"
TIMEOUT_S = 3600.0
FIRST_TURN_SHARED = 0.75
"""Of a first turn: the part that is written before the question, as a system prompt is."""
SCHEMA = {"type": "array", "items": {"type": "integer"}, "minItems": 100_000}
"""Longer than any answer: the grammar binds every token until the answer is cut at its length."""


def load(plan: Plan, workload: Workload, seed: int, timeout_s: float = TIMEOUT_S) -> dict:
    """Run the generator once with `workload` and return its result line, with the details of every request.

    In tail isolation these are the short requests alone: see `long_requests`. Raises CheckFailed with the end of the
    generator's output.
    """
    with tempfile.TemporaryDirectory(prefix="appliance-bench-") as scratch:
        output = Path(scratch) / "result.jsonl"
        words = [*command(plan, arguments(workload), seed), "--output-file", str(output), "--output-details"]
        slo = workload.slo
        words += ["--goodput", f"ttft:{slo.ttft_ms:g}", f"tpot:{slo.tpot_ms:g}"] if slo else []
        try:
            done = subprocess.run(
                words, env=variables(plan, scratch), capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{TOOL}, {workload.words()}: took longer than {timeout_s:.0f} s") from None
        if done.returncode != 0 or not output.exists():
            raise CheckFailed(f"{TOOL}, {workload.words()}: {why(done)}")
        return json.loads(output.read_text().splitlines()[-1])


@contextmanager
def long_requests(plan: Plan, input_tokens: int, output_tokens: int, seed: int, is_busy) -> Iterator[None]:
    """One long request in flight at any time while the block runs: the noise behind which short ones come.

    `is_busy` tells whether a request has reached the engine. Raises CheckFailed where none does in time.
    """
    with tempfile.TemporaryDirectory(prefix="appliance-bench-") as scratch:
        asked = ["--dataset-name", "random-ids", "--random-range-ratio", "1.0", "--max-concurrency", "1"]
        asked += ["--random-input-len", str(input_tokens), "--random-output-len", str(output_tokens)]
        asked += ["--num-prompts", "1000", "--output-file", str(Path(scratch) / "result.jsonl")]
        log = Path(scratch) / "log"
        with log.open("wb") as written:
            words = command(plan, asked, seed)
            process = subprocess.Popen(words, env=variables(plan, scratch), stdout=written, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 300
            while not is_busy():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise CheckFailed(f"{TOOL}: no long request came: {log.read_text(errors='replace')[-1000:]}")
                time.sleep(0.1)
            yield
            if process.poll() is not None:
                raise CheckFailed(f"{TOOL}: the long requests ended early: {log.read_text(errors='replace')[-1000:]}")
        finally:
            process.kill()
            process.wait()


def why(done: subprocess.CompletedProcess) -> str:
    """Why the generator gave no result. It divides by what came to an end, and so breaks where nothing did."""
    if done.stderr.rstrip().endswith("IndexError: index -1 is out of bounds for axis 0 with size 0"):
        return "not one request came to its end; the workers' logs say why"
    return f"ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}"


def command(plan: Plan, asked: list[str], seed: int) -> list[str]:
    """The generator's words, but where its result goes."""
    words = [sys.executable, "-W", "ignore", "-m", TOOL]
    words += ["--backend", "sglang-oai-chat", "--base-url", plan.endpoint()]
    words += ["--model", plan.model.path, "--served-model-name", plan.model.served_name]
    words += ["--warmup-requests", "0", "--seed", str(seed), "--disable-tqdm", *asked]
    return words + (["--pd-separated"] if plan.topology == "pd" else [])


def arguments(workload: Workload) -> list[str]:
    """What the generator is told of a workload. Output tokens are counted by the answers' `usage`, never by chunks."""
    body: dict = {"stream_options": {"include_usage": True}}
    words = []
    if workload.concurrency is not None:
        words += ["--max-concurrency", str(workload.concurrency)]
    else:
        words += ["--request-rate", f"{workload.request_rate:g}"]
    if workload.name == "multi-turn":
        shared = round(workload.input_tokens * FIRST_TURN_SHARED)
        words += ["--dataset-name", "generated-shared-prefix", "--gsp-num-turns", str(workload.turns)]
        words += ["--gsp-num-groups", str(max(1, workload.requests // workload.turns)), "--gsp-prompts-per-group", "1"]
        words += ["--gsp-system-prompt-len", str(shared), "--gsp-question-len", str(workload.input_tokens - shared)]
        words += ["--gsp-output-len", str(workload.output_tokens)]
        words += ["--num-prompts", str(max(1, workload.requests // workload.turns))]
    else:
        words += ["--dataset-name", "random-ids", "--random-range-ratio", "1.0"]
        words += ["--random-input-len", str(workload.input_tokens), "--random-output-len", str(workload.output_tokens)]
        words += ["--num-prompts", str(workload.requests)]
    if workload.name == "structured output":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "numbers", "schema": SCHEMA}}
    return [*words, "--extra-request-body", json.dumps(body)]


def variables(plan: Plan, scratch: str) -> dict[str, str]:
    """The generator's environment: no proxy, no hub, its temporary files in `scratch`."""
    env = without_proxies(os.environ) | environment(plan, plan.workers[0])
    return env | {"HF_HUB_OFFLINE": "1", "TMPDIR": scratch}
