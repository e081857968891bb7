"""What one SGLang server tells about itself over HTTP."""

from pathlib import Path

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

    def start_profile(self, folder: Path, steps: int, name: str) -> None:
        """Profile the next `steps` forward passes; each rank writes NAME-TP-*.trace.json.gz to `folder`, which the server
        must be able to write to, and stops by itself. Raises CheckFailed.
        """
        body = {"output_dir": str(folder), "num_steps": steps, "profile_id": name, "activities": ["CPU", "GPU"]}
        self._get("/start_profile", "POST", body | {"with_stack": False, "record_shapes": False})

    def start_expert_record(self) -> None:
        """Begin to count which experts tokens are sent to; what was counted before is dropped. Raises CheckFailed."""
        self._get("/start_expert_distribution_record", "POST")

    def dump_expert_record(self) -> None:
        """Stop counting, and have the server write the counts to its recorder's folder. Raises CheckFailed."""
        self._get("/stop_expert_distribution_record", "POST")
        self._get("/dump_expert_distribution_record", "POST")

    def _get(self, path: str, method: str = "GET", body: dict | None = None) -> httpx.Response:
        try:
            return self._client.request(method, path, json=body).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise CheckFailed(f"{self.url}{path}: answered {error.response.status_code}; expected 200") from None
        except httpx.HTTPError as error:
            raise CheckFailed(f"{self.url}{path}: no answer ({type(error).__name__})") from None
