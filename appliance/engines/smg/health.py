"""Whether the router has the workers that it needs."""

import httpx


async def has_workers(url: str, timeout_s: float = 5.0) -> bool:
    """Whether the router at `url` can route a request now (GET /readiness; /health stays 200 without workers)."""
    async with httpx.AsyncClient(trust_env=False, timeout=timeout_s) as client:
        try:
            return (await client.get(f"{url}/readiness")).status_code == 200
        except httpx.HTTPError:
            return False
