"""A short load by the front door: is every request answered whole, and how fast. No benchmark: see `bench serve`."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import httpx

from appliance.documents import Plan

REQUEST_LIMIT_S = 300.0


class Load(NamedTuple):
    """What came back: requests answered whole, their output tokens, the seconds from first to last, and errors."""

    answered: int
    tokens: int
    seconds: float
    errors: list[str]


def short_load(plan: Plan, requests: int, at_once: int, tokens: int) -> Load:
    """Send `requests` completions of `tokens` output tokens each, `at_once` at a time, no two alike."""
    with (
        httpx.Client(base_url=plan.endpoint(), trust_env=False, timeout=REQUEST_LIMIT_S) as client,
        ThreadPoolExecutor(max_workers=at_once) as pool,
    ):

        def ask(number: int) -> str | None:
            prompt = f"Request {number}: " + f"line {number} of a log, again and again. " * 8
            body = {"model": plan.model.served_name, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
            try:
                response = client.post("/v1/completions", json=body)
                if response.status_code != 200:
                    return f"status {response.status_code}: {response.text[:200]}"
                came = response.json()["usage"]["completion_tokens"]
            except httpx.HTTPError as error:
                return f"no answer ({type(error).__name__})"
            except (ValueError, KeyError, TypeError):
                return f"not a completion: {response.text[:200]}"
            return None if came == tokens else f"{came} tokens came, {tokens} were asked for"

        began = time.monotonic()
        errors = [error for error in pool.map(ask, range(requests)) if error]
        seconds = time.monotonic() - began
    answered = requests - len(errors)
    return Load(answered, answered * tokens, seconds, errors)
