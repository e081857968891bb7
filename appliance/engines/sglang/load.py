"""SGLang's own load generator, `sglang.benchmark.serving`, run once against a plan's front door."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from appliance.documents import Plan
from appliance.engines.sglang.command import environment
from appliance.errors import CheckFailed
from appliance.launch.environment import without_proxies

TOOL = "sglang.benchmark.serving"
TIMEOUT_S = 600


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
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{TOOL} at concurrency {concurrency} took longer than {TIMEOUT_S} s") from None
        if done.returncode != 0 or not output.exists():
            raise CheckFailed(f"{TOOL} ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
        return json.loads(output.read_text().splitlines()[-1])
