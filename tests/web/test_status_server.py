"""The live page: in a real browser, with a status made for the test; and who may ask for it."""

import json
import socket
import threading
from http.client import HTTPConnection

import pytest

from appliance.documents import Finding, GpuNow, ProcessStatus, RuleResult, Status, WorkerLoad
from appliance.errors import InputError
from appliance.web.status_server import Findings, server
from tests.helpers.browser import opened

SERVING = Status(
    phase="serving",
    endpoint="http://127.0.0.1:30000",
    topology="pd",
    model="<img src=x onerror=alert(1)>",
    plan_identity="0" * 64,
    started="2026-01-01T00:00:00+00:00",
    supervisor_pid=1,
    processes=[
        ProcessStatus(
            name="prefill", phase="serving", answers=True, pid=2, port=30010, resident_mib=8, restarts=0, last_error=None
        )
    ],
    error=None,
    loads=[
        WorkerLoad(
            name="prefill", running=3, queued={"num_queue_reqs": 2}, kv_use=0.125, output_tokens_per_s=0.0,
            prompt_tokens=100, output_tokens=7, kv_transfers=4, kv_bytes=8_000_000, kv_latency_ms=2.5, kv_gb_s=1.5,
        )
    ],
    gpus=[GpuNow(index=0, name="made for a test", memory_used_mib=10, memory_mib=100, power_w=55.0, temperature_c=40)],
)  # fmt: skip
FOUND = RuleResult(
    rule="pcie-power-saving",
    title="made for a test",
    severity="note",
    status="finding",
    reference="none",
    findings=[Finding(severity="note", evidence="the link sleeps", fix="wake it")],
)


@pytest.fixture
def served():
    """Serves what `say` holds; gives the port."""
    say = {"status": SERVING}
    page = server(0, lambda: say["status"], Findings(lambda: [FOUND]))
    thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield page.server_address[1], say
    page.shutdown()
    thread.join()
    page.server_close()


def get(port: int, path: str = "/", host: str | None = None, method: str = "GET"):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("dark", [False, True])
def test_it_shows_workers_load_transfers_gpus_and_findings(served, dark):
    port, _ = served
    with opened(f"http://127.0.0.1:{port}/", dark=dark) as found:
        found.page.wait_for_selector("#loads td")
        text = found.page.inner_text("main")
        for words in (
            "prefill",
            "2 queue",
            "12.5 %",
            "2.5",
            "made for a test",
            "pcie-power-saving",
            "the link sleeps",
        ):
            assert words in text
        assert "<img src=x" in text and found.page.query_selector("main img") is None
        assert found.complaints == [] and found.unreadable() == []
        assert all(url.startswith((f"http://127.0.0.1:{port}/", "data:")) for url in found.requests)


def test_it_follows_what_happens(served):
    port, say = served
    with opened(f"http://127.0.0.1:{port}/", width=360) as found:
        found.page.wait_for_selector("#loads td")
        assert found.too_wide() == 0
        say["status"] = SERVING.model_copy(update={"phase": "failed", "error": "decode died"})
        found.page.wait_for_selector("#trouble:has-text('decode died')", timeout=8000)
        assert found.page.is_visible("#trouble")


def test_only_this_machine_under_its_own_name_may_ask(served):
    port, _ = served
    assert get(port)[0] == 200 and get(port, host=f"localhost:{port}")[0] == 200
    status, text = get(port, path="/status.json", host="attacker.example")
    assert status == 403 and "prefill" not in text
    assert get(port, path="/../etc/passwd")[0] == 404
    assert get(port, method="POST")[0] == 501


def test_nothing_that_runs_is_said_and_no_error(served):
    port, say = served
    say["status"] = None
    assert json.loads(get(port, "/status.json")[1])["status"] is None


def test_a_port_that_is_taken_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=r"--port \d+: cannot be bound .*expected a free port"):
            server(taken.getsockname()[1], lambda: None, Findings(lambda: []))
