"""The proof that a plan serves: one completion through its front door."""

import httpx

from appliance.documents import Plan

COMPLETION_TIMEOUT_S = 120.0
"""The first request through a pair sets up the KV connection, which took 38 s in one public report (sglang#28737)."""


async def completes(plan: Plan) -> str | None:
    """Ask the plan's endpoint for four tokens. Returns what is wrong, in words, or None if they came."""
    body = {
        "model": plan.model.served_name,
        "prompt": "Say hello.",
        "max_tokens": 4,
        "temperature": 0,
        "ignore_eos": True,
    }
    async with httpx.AsyncClient(trust_env=False, timeout=COMPLETION_TIMEOUT_S) as client:
        try:
            response = await client.post(f"{plan.endpoint()}/v1/completions", json=body)
        except httpx.HTTPError as error:
            return f"no answer ({type(error).__name__})"
    if response.status_code != 200:
        return f"status {response.status_code}: {response.text[:300]}"
    try:
        tokens = response.json()["usage"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        return f"not a completion: {response.text[:300]}"
    return None if tokens == body["max_tokens"] else f"{tokens} tokens came, {body['max_tokens']} were asked for"
