"""A stand-in for worker and router: no engine, the same HTTP endpoints, deterministic answers, and faults on demand.

    python standin_engine.py NAME PLAN FAULT

It is ready within a second, so that a deploy can fail in many ways in little time. What it is asked is counted as
SGLang counts it.
"""

import hashlib
import json
import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from appliance.documents import Plan
from appliance.engines.sglang.command import command
from appliance.engines.sglang.identity import flags
from appliance.launch.systemd import notify

NAME, FAULT = sys.argv[1], sys.argv[3]
PLAN = Plan.read(Path(sys.argv[2]))
REQUESTS_BEFORE_DEATH = 20  # the golden prompts are 14: it dies under the load
counters = {"requests": 0, "prefilled": 0}


def url_of(role: str) -> str:
    return next(PLAN.url(worker.port) for worker in PLAN.workers if worker.role == role)


def text_for(prompt: str, tokens: int) -> tuple[str, list[int]]:
    """A greedy answer: always the same for the same prompt."""
    secret = "another model" if FAULT == "wrong answer" and NAME == "decode" else "the model"
    digest = hashlib.sha256(f"{secret} {prompt}".encode()).digest()
    ids = [digest[place % 32] for place in range(tokens)]
    return " ".join(map(str, ids)), ids


def server_info() -> dict:
    worker = PLAN.worker(NAME)
    info = {flag.removeprefix("--").replace("-", "_"): value for flag, value in flags(command(PLAN, worker))}
    if FAULT == "identity" and NAME == "decode":
        info["served_model_name"] = "something-else"
    return info | {"version": PLAN.engine.version}


def metrics() -> str:
    worker = PLAN.worker(NAME)
    prefilled = counters["prefilled"]
    lines = {'sglang:realtime_tokens_total{mode="prefill_compute"}': prefilled}
    if worker.role == "prefill":
        sent = 0 if FAULT == "no transfer" else counters["requests"]
        lines |= {"sglang:kv_transfer_total_mb_count": sent, "sglang:kv_transfer_total_mb_sum": sent * 0.5}
    return "".join(f"{key} {value}\n" for key, value in lines.items())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        answers = {"/server_info": server_info, "/metrics": metrics}
        if self.path in answers:
            found = answers[self.path]()
            self.answer(200, found if isinstance(found, str) else json.dumps(found))
        else:
            self.answer(200, "{}")

    def do_POST(self):  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if NAME == "router":
            self.route(body)
            return
        counters["requests"] += 1
        if PLAN.worker(NAME).role == "prefill" or FAULT == "decode prefills":
            counters["prefilled"] += 5
        if FAULT == "dies under load" and NAME == "decode" and counters["requests"] > REQUESTS_BEFORE_DEATH:
            os._exit(9)
        if FAULT == "slow" and NAME == "decode":
            time.sleep(0.5)
        self.answer(200, json.dumps(dict(zip(("text", "ids"), text_for(body["prompt"], body["tokens"]), strict=True))))

    def route(self, body: dict) -> None:
        prompt = json.dumps(body.get("prompt") or body.get("messages"))
        tokens = body["max_tokens"]
        try:
            for role in ("prefill", "decode"):
                found = ask(url_of(role), {"prompt": prompt, "tokens": tokens})
        except OSError as error:
            self.answer(503, json.dumps({"error": f"{role}: {error}"}))
            return
        chat = "messages" in body
        usage = {"completion_tokens": tokens}
        if body.get("stream"):
            part = {"delta": {"content": found["text"]}} if chat else {"text": found["text"]}
            events = [{"choices": [part]}, {"choices": [], "usage": usage}]
            text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            self.answer(200, text)
        else:
            choice = {"message": {"content": found["text"]}} if chat else {"text": found["text"]}
            self.answer(200, json.dumps({"choices": [choice | {"token_ids": found["ids"]}], "usage": usage}))

    def answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments) -> None:
        pass


def ask(url: str, body: dict) -> dict:
    request = urllib.request.Request(f"{url}/ask", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


def main() -> None:
    if FAULT == "never ready" and NAME == "prefill":
        print("CUDA error: out of memory (a stand-in's)", file=sys.stderr, flush=True)
        sys.exit(1)
    port = PLAN.router.port if NAME == "router" else PLAN.worker(NAME).port
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"stand-in {NAME} serves on {port}", file=sys.stderr, flush=True)
    if not (FAULT == "hangs" and NAME == "prefill"):
        notify(os.environ["NOTIFY_SOCKET"], "READY=1")
    while True:
        time.sleep(20)
        notify(os.environ["NOTIFY_SOCKET"], "WATCHDOG=1")


main()
