"""Whether an SGLang server answers: not that a port is open, but that it generates."""

import httpx

HEALTH_TIMEOUT_S = 25.0
"""SGLang's own health request gives up after 20 s (HEALTH_CHECK_TIMEOUT in its http_server.py)."""


async def generates(url: str, timeout_s: float = HEALTH_TIMEOUT_S) -> bool:
    """Whether the server at `url` generates a token now (GET /health_generate).

    A prefill or decode worker answers it through a bootstrap to itself, so it needs no peer. A busy server
    answers without generating anew. Takes about a second.
    """
    async with httpx.AsyncClient(trust_env=False, timeout=timeout_s) as client:
        try:
            return (await client.get(f"{url}/health_generate")).status_code == 200
        except httpx.HTTPError:
            return False
