"""The workers' own reports of their kernels, over HTTP from a small server."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from appliance.errors import CheckFailed
from appliance.verify.kernels import kernel_mismatches


@pytest.fixture
def served():
    """A server that answers /server_info with the given states, on a port of its own."""
    servers = []

    def serve(states) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"internal_states": states}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=servers[-1].serve_forever, daemon=True).start()
        return servers[-1].server_port

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def plan_of(make_plan, ports: dict[str, int], **env):
    plan = make_plan("pd")
    workers = [worker.model_copy(update={"port": ports[worker.name], "env": env}) for worker in plan.workers]
    return plan.model_copy(update={"workers": workers})


def test_the_worker_that_serves_on_stock_kernels_is_named(make_plan, served):
    active = [{"appliance_kernels": {"state": "active", "reason": None}}]
    failed = [{"appliance_kernels": {"state": "failed", "reason": "no kernel library at x"}}]
    plan = plan_of(make_plan, {"prefill": served(active), "decode": served(failed)}, APPLIANCE_KERNELS="on")
    [line] = kernel_mismatches(plan)
    assert line.startswith("decode: APPLIANCE_KERNELS is planned on; the server reports its kernels failed")
    assert "no kernel library at x" in line


def test_servers_without_the_plugin_are_as_planned_where_the_plan_is_silent(make_plan, served):
    assert kernel_mismatches(plan_of(make_plan, {"prefill": served([{}]), "decode": served([{}])})) == []


def test_a_mute_worker_is_no_proof(make_plan, served):
    plan = plan_of(make_plan, {"prefill": served([{}]), "decode": 1})
    with pytest.raises(CheckFailed, match="no answer"):
        kernel_mismatches(plan)
