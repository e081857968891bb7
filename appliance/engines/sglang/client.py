"""What one SGLang server tells about itself over HTTP."""

import httpx

from appliance.engines.sglang.metrics import WorkerMetrics, parse
from appliance.errors import CheckFailed


class SglangClient:
    """A synchronous client of one server. Proxies of the environment are ignored: the server is on this host."""

    def __init__(self, url: str, timeout_s: float = 30.0):
        self.url = url
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=timeout_s)

    def server_info(self) -> dict:
        """The arguments and state that the server reports. Raises CheckFailed."""
        try:
            info = self._get("/server_info").json()
        except ValueError:
            info = None
        if not isinstance(info, dict):
            raise CheckFailed(f"{self.url}/server_info: not the answer of an SGLang server")
        return info

    def metrics(self) -> WorkerMetrics:
        """The server's counters. Raises CheckFailed, also where metrics are switched off."""
        return parse(self._get("/metrics").text)

    def flush_cache(self) -> None:
        """Empty the prefix cache of an idle server. Raises CheckFailed."""
        self._get("/flush_cache", method="POST")

    def _get(self, path: str, method: str = "GET") -> httpx.Response:
        try:
            return self._client.request(method, path).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise CheckFailed(f"{self.url}{path}: answered {error.response.status_code}; expected 200") from None
        except httpx.HTTPError as error:
            raise CheckFailed(f"{self.url}{path}: no answer ({type(error).__name__})") from None
