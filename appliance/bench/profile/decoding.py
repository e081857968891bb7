"""A batch of requests that decode while the block runs."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from appliance.documents import Plan
from appliance.errors import CheckFailed

SEED = 20261201
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DECODING = 2
"""Pieces of an answer after which its prefill is over for certain."""

LEAVE_S = 10.0
"""For answers in progress to be broken off; a server that sends nothing more is not waited for."""


class Batch:
    """Requests in flight, and how many pieces each has got."""

    def __init__(self, requests: int):
        self.pieces = [0] * requests
        self.ended: list[str] = []
        self.stopping = threading.Event()

    def wait_for(self, pieces: int, timeout_s: float) -> bool:
        """Wait until every request has got so many pieces; False where one ended before, or time is up."""
        deadline = time.monotonic() + timeout_s
        while min(self.pieces) < pieces:
            if self.ended or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True


@contextmanager
def decoding(plan: Plan, requests: int, words: int, tokens: int, timeout_s: float) -> Iterator[Batch]:
    """Send `requests` prompts of about `words` random words for `tokens` tokens each, and yield once all decode.

    What still runs at the end of the block is broken off. Raises CheckFailed where the plan does not answer.
    """
    batch = Batch(requests)
    chosen = random.Random(SEED)
    prompts = [" ".join("".join(chosen.choices(LETTERS, k=5)) for _ in range(words)) for _ in range(requests)]
    threads = [
        threading.Thread(target=ask, args=(plan, prompt, tokens, timeout_s, batch, index), daemon=True)
        for index, prompt in enumerate(prompts)
    ]
    for thread in threads:
        thread.start()
    try:
        if not batch.wait_for(DECODING, timeout_s):
            why = f"a request {batch.ended[0]} before" if batch.ended else f"{timeout_s:.0f} s passed until"
            raise CheckFailed(
                f"{plan.endpoint()}: {why} all {requests} requests were decoding; "
                "expected an idle plan with room for them"
            )
        yield batch
    finally:
        batch.stopping.set()
        until = time.monotonic() + LEAVE_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


def ask(plan: Plan, prompt: str, tokens: int, timeout_s: float, batch: Batch, index: int) -> None:
    """Stream one answer and count its pieces, until it ends or the batch is stopped."""
    body = {"model": plan.model.served_name, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    body |= {"ignore_eos": True, "stream": True}
    try:
        with (
            httpx.Client(trust_env=False, timeout=timeout_s) as client,
            client.stream("POST", f"{plan.endpoint()}/v1/completions", json=body) as response,
        ):
            if response.status_code != httpx.codes.OK:
                batch.ended.append(f"was answered with {response.status_code}")
                return
            for line in response.iter_lines():
                if batch.stopping.is_set():
                    return
                batch.pieces[index] += line.startswith("data: {")
        batch.ended.append("had ended")
    except httpx.HTTPError as error:
        batch.ended.append(f"failed ({type(error).__name__})")
