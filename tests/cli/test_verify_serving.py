"""`appliance verify serving`: a stand-in answers in the place of a front door; the real one is in tests/e2e."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.helpers.cli import appliance, refused


class FrontDoor(BaseHTTPRequestHandler):
    """Stand-in: answers a completion with as many tokens as the class says."""

    tokens = 4

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"usage": {"completion_tokens": self.tokens}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def plan_file(make_plan, tmp_path):
    plan = make_plan("single")
    plan.write(tmp_path / "plan.json")
    return plan, tmp_path / "plan.json"


@pytest.mark.parametrize(("tokens", "code", "words"), [(4, 0, "held  "), (3, 1, "3 tokens came, 4 were asked for")])
def test_what_comes_through_the_front_door_is_counted(plan_file, tokens, code, words):
    plan, file = plan_file
    handler = type("Handler", (FrontDoor,), {"tokens": tokens})
    server = ThreadingHTTPServer((plan.host, plan.workers[0].port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = appliance("verify", "serving", file)
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == code
    assert words in done.stdout


def test_nobody_at_the_front_door_is_said(plan_file):
    done = appliance("verify", "serving", plan_file[1])
    assert done.returncode == 1
    assert "FAILED  a completion through the front door: http://127.0.0.1:" in done.stdout
    assert "no answer (ConnectError)" in done.stdout


def test_a_file_that_is_no_plan_is_refused(tmp_path):
    assert "no such file; expected a Plan document" in refused("verify", "serving", tmp_path / "nothing.json")
