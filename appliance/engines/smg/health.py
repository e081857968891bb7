"""Whether the router lives, and whether it has the workers that it needs."""

import httpx

TIMEOUT_S = 5.0


async def has_workers(url: str, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether the router at `url` can route a request now (/readiness: 503 while workers are missing)."""
    return await answers_200(f"{url}/readiness", timeout_s)


async def is_alive(url: str, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether the router at `url` answers at all (/health: 200 also without workers)."""
    return await answers_200(f"{url}/health", timeout_s)


async def answers_200(address: str, timeout_s: float) -> bool:
    """Whether a GET of `address` is answered by status 200 in time."""
    async with httpx.AsyncClient(trust_env=False, timeout=timeout_s) as client:
        try:
            return (await client.get(address)).status_code == 200
        except httpx.HTTPError:
            return False
