"""The kernels inside SGLang on sm_90: the same tokens as the engine's own path, and the time of a decode step.

usage: python compare.py CONFIG_JSON OUT_JSON [VARIANT...]

Starts one server after another on GPU 0 with random weights (see livelier_dummy_weights), asks each the same greedy
requests, and times decode as the difference of two generations of unlike length. Variants: stock (FlashMLA, the
engine's path on sm_90), fallback (the sm_120 entry point with the engine's Triton kernel), ours (the sm_120 entry point
with the kernels calibrated).
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from v4_model import make

HERE = Path(__file__).parent
PORT = 31970
BATCHES = [1, 4, 16, 64]
SHORT, LONG = 16, 144  # generated tokens; a step's time is the difference over 128 steps
START_S = float(os.environ.get("START_S", "240"))
LIVELY = "livelier_dummy_weights"
PLUGINS = {
    "stock": [LIVELY],
    "fallback": [LIVELY, "forced_sm120_entry", "appliance_kernels"],
    "ours": [LIVELY, "forced_sm120_entry", "appliance_kernels"],
}
SWITCH = {"stock": "off", "fallback": "off", "ours": "on"}
# fp8 experts and Triton: FlashInfer's MoE for sm_90 was still compiling after minutes.
ALWAYS = {
    "SGLANG_SM120_FLASHMLA_BACKEND": "triton",
    "SGLANG_DSV4_FP4_EXPERTS": "0",
    "SGLANG_JIT_DEEPGEMM_PRECOMPILE": "0",
}
INDEXER = {"SGLANG_FP8_PAGED_MQA_LOGITS_TORCH": "1", "SGLANG_OPT_USE_TILELANG_INDEXER": "1"}
# What SGLang itself sets on sm_120 (srt/arg_groups/model_hook.py), without DeepGEMM.
AS_ON_SM120 = {
    "SGLANG_OPT_FP8_WO_A_GEMM": "0",
    "SGLANG_OPT_USE_TOPK_V2": "0",
    "SGLANG_OPT_USE_TILELANG_MHC_PRE": "0",
    "SGLANG_OPT_DEEPGEMM_HC_PRENORM": "0",
    "SGLANG_ENABLE_JIT_DEEPGEMM": "0",
}
SETTINGS = {"as on sm_120": ALWAYS | INDEXER | AS_ON_SM120, "DeepGEMM": ALWAYS | INDEXER, "DeepGEMM's indexer": ALWAYS}
"""Tried in this order with the first variant, until a server starts."""


def start(model: Path, variant: str, settings: str, log: Path) -> subprocess.Popen:
    environment = os.environ | SETTINGS[settings] | {
        "SGLANG_PLUGINS": ",".join(PLUGINS[variant]),
        "APPLIANCE_KERNELS": SWITCH[variant],
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    words = [
        sys.executable, "-m", "sglang.launch_server", "--model-path", str(model), "--load-format", "dummy",
        "--skip-tokenizer-init", "--port", str(PORT), "--moe-runner-backend", "triton", "--mem-fraction-static", "0.4",
        "--max-running-requests", "64", "--context-length", "16384", "--chunked-prefill-size", "4096",
        "--cuda-graph-bs-decode", *map(str, BATCHES), "--random-seed", "1",
    ]  # fmt: skip
    words += os.environ.get("MORE_ARGS", "").split()
    return subprocess.Popen(words, env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)


def wait_until_ready(server: subprocess.Popen) -> float:
    begun = time.monotonic()
    while time.monotonic() < begun + START_S:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}")
        try:
            if httpx.get(f"http://127.0.0.1:{PORT}/health_generate", timeout=30).status_code == 200:
                return time.monotonic() - begun
        except httpx.HTTPError:
            pass
        time.sleep(1)
    raise RuntimeError(f"not ready within {START_S:.0f} s")


def generate(prompts: list[list[int]], tokens: int, logprobs: bool = False) -> list[dict]:
    body = {
        "input_ids": prompts,
        "sampling_params": {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True},
        "return_logprob": logprobs,
    }
    answer = httpx.post(f"http://127.0.0.1:{PORT}/generate", json=body, timeout=300)
    answer.raise_for_status()
    return answer.json()


def prompts_of(count: int, length: int, seed: int) -> list[list[int]]:
    source = random.Random(seed)
    return [[source.randrange(10, 120000) for _ in range(length)] for _ in range(count)]


def step_ms(batch: int, context: int) -> float:
    """Milliseconds of a decode step of `batch` requests, the better of two."""
    found = []
    for repetition in range(3):  # the first warms up
        taken = []
        for tokens in (SHORT, LONG):
            prompts = prompts_of(batch, context, 1000 * repetition + tokens)
            begun = time.perf_counter()
            generate(prompts, tokens)
            taken.append(time.perf_counter() - begun)
        found.append((taken[1] - taken[0]) * 1000 / (LONG - SHORT))
    return round(min(found[1:]), 3)


def trace(variant: str, folder: Path) -> list[str]:
    """A few decode steps of a batch of 8 in the engine's own profiler; the traces' names in `folder`."""
    place = Path(tempfile.mkdtemp())
    body = {"output_dir": str(place), "num_steps": 5, "activities": ["CPU", "GPU"]}
    with ThreadPoolExecutor() as pool:
        load = pool.submit(generate, prompts_of(8, 2048, 77), 200)
        time.sleep(1.5)  # past the prefill
        httpx.post(f"http://127.0.0.1:{PORT}/start_profile", json=body, timeout=120)
        load.result()
    time.sleep(5)
    found = sorted(place.rglob("*.json.gz"))
    for number, path in enumerate(found[:1]):
        shutil.copy(path, folder / f"{variant}-{number}.trace.json.gz")
    return [path.name for path in found]


def run(model: Path, variant: str, settings: str, folder: Path) -> dict:
    log = folder / f"{variant}.log"
    server = start(model, variant, settings, log)
    result: dict = {"variant": variant, "settings": settings}
    try:
        result["ready_s"] = round(wait_until_ready(server), 1)
        result["answers"] = [
            {
                "prompt_tokens": len(prompt),
                "tokens": [entry[1] for entry in answer["meta_info"]["output_token_logprobs"]],
                "logprobs": [round(entry[0], 4) for entry in answer["meta_info"]["output_token_logprobs"]],
            }
            for length in (20, 200, 2000, 6000)
            for prompt in prompts_of(2, length, length)
            for answer in generate([prompt], 32, logprobs=True)
        ]
        result["step_ms"] = {
            f"context {context}": {str(batch): step_ms(batch, context) for batch in BATCHES} for context in (2048,)
        }
        states = httpx.get(f"http://127.0.0.1:{PORT}/server_info", timeout=60).json()["internal_states"]
        result["kernels"] = states[0].get("appliance_kernels")
        result["traces"] = trace(variant, folder)
    except (RuntimeError, httpx.HTTPError, KeyError) as error:
        result["failed"] = f"{type(error).__name__}: {error}"
    finally:
        subprocess.run(["kill", "-9", *children_of(server.pid), str(server.pid)], check=False)
        server.wait()
    lines = log.read_text(errors="replace").splitlines()
    result["log"] = [line for line in lines if "appliance kernels" in line][:80]
    if "failed" in result:
        result["log_tail"] = lines[-60:]
    return result


def children_of(pid: int) -> list[str]:
    import psutil

    return [str(child.pid) for child in psutil.Process(pid).children(recursive=True)]


def agreement(one: dict, other: dict) -> list[dict]:
    """For each prompt: how many tokens are equal before one differs, and how far apart log probabilities lie."""
    found = []
    for a, b in zip(one["answers"], other["answers"], strict=True):
        pairs = list(zip(a["tokens"], b["tokens"], strict=True))
        equal = next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))
        apart = [abs(x - y) for x, y in zip(a["logprobs"][:equal], b["logprobs"][:equal], strict=True)]
        found.append(
            {
                "prompt_tokens": a["prompt_tokens"],
                "equal": equal,
                "of": len(pairs),
                "most_apart": max(apart, default=None),
            }
        )
    return found


def main() -> None:
    config, out = Path(sys.argv[1]), Path(sys.argv[2])
    variants = sys.argv[3:] or list(PLUGINS)
    model = make(config, Path(tempfile.mkdtemp()) / "v4")
    results = {}
    names = list(SETTINGS)
    for variant in variants:
        results[variant] = run(model, variant, names[0], out.parent)
        while variant == variants[0] and "ready_s" not in results[variant] and len(names) > 1:
            print(json.dumps(results[variant]), flush=True)
            names.pop(0)
            results[variant] = run(model, variant, names[0], out.parent)
        if {"stock", variant} <= results.keys() and all("answers" in results[v] for v in ("stock", variant)):
            results[variant]["against_stock"] = agreement(results["stock"], results[variant])
        out.write_text(json.dumps(results, indent=1))
        shown = {key: value for key, value in results[variant].items() if key not in ("answers", "log")}
        print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
