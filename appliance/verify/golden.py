"""Golden prompts: greedy answers of one endpoint compared with those of another, token by token."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

import httpx

from appliance.documents import GoldenAnswer
from appliance.errors import CheckFailed
from appliance.verify.prompts import PROMPTS, GoldenPrompt

TIMEOUT_S = 300.0


def ask_all(
    endpoint: str, model: str, at_once: int = 1, on_answer: Callable[[int], None] = lambda done: None
) -> list[GoldenAnswer]:
    """Send every golden prompt to `endpoint`, `at_once` at a time, and return the answers in the prompts' order.

    Raises CheckFailed when one is not answered. `on_answer` is told how many answers have come.
    """
    answers = []
    with (
        httpx.Client(base_url=endpoint, trust_env=False, timeout=TIMEOUT_S) as client,
        ThreadPoolExecutor(max_workers=at_once) as pool,
    ):
        for answer in pool.map(lambda prompt: ask(client, model, prompt), PROMPTS):
            answers.append(answer)
            on_answer(len(answers))
    return answers


def ask(client: httpx.Client, model: str, prompt: GoldenPrompt) -> GoldenAnswer:
    """Send one golden prompt, greedily, and return what came back. Raises CheckFailed."""
    path, body = request(model, prompt)
    try:
        if prompt.stream:
            with client.stream("POST", path, json=body) as response:
                if response.status_code != 200:
                    response.read()
                    raise CheckFailed(f"{prompt.name}: status {response.status_code}: {response.text[:300]}")
                return from_stream(prompt, list(response.iter_lines()))
        response = client.post(path, json=body)
    except httpx.HTTPError as error:
        raise CheckFailed(f"{prompt.name}: no answer from {client.base_url} ({type(error).__name__})") from None
    if response.status_code != 200:
        raise CheckFailed(f"{prompt.name}: status {response.status_code}: {response.text[:300]}")
    return from_response(prompt, parsed(prompt, response.text))


def request(model: str, prompt: GoldenPrompt) -> tuple[str, dict]:
    """Path and body of the request for a golden prompt (OpenAI API, with SGLang's `return_token_ids`)."""
    body = {"model": model, "temperature": 0, "max_tokens": prompt.max_tokens, "stream": prompt.stream}
    if prompt.stream:
        body["stream_options"] = {"include_usage": True}
    else:
        body["return_token_ids"] = True
    if prompt.api == "completion":
        return "/v1/completions", body | {"prompt": prompt.content}
    messages = [{"role": role, "content": text} for role, text in prompt.content]
    return "/v1/chat/completions", body | {"messages": messages}


def from_response(prompt: GoldenPrompt, data: dict) -> GoldenAnswer:
    """The answer in a whole response. Raises CheckFailed when it is none."""
    try:
        choice = data["choices"][0]
        return GoldenAnswer(
            prompt=prompt.name,
            text=choice["text"] if prompt.api == "completion" else choice["message"]["content"] or "",
            token_ids=choice.get("token_ids") or choice.get("response_token_ids"),
            completion_tokens=data["usage"]["completion_tokens"],
        )
    except (KeyError, IndexError, TypeError) as error:
        raise CheckFailed(f"{prompt.name}: not an answer ({error!r}): {str(data)[:300]}") from None


def from_stream(prompt: GoldenPrompt, lines: list[str]) -> GoldenAnswer:
    """The answer in a stream of server-sent events. Raises CheckFailed when it is incomplete or an error."""
    events = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    if not events or events[-1] != "[DONE]":
        raise CheckFailed(f"{prompt.name}: the stream ended early, after {len(events)} events")
    text, tokens = "", None
    for event in events[:-1]:
        data = parsed(prompt, event)
        if "error" in data:
            raise CheckFailed(f"{prompt.name}: error in the stream: {event[:300]}")
        for choice in data.get("choices", []):
            text += choice["text"] if prompt.api == "completion" else choice["delta"].get("content") or ""
        tokens = (data.get("usage") or {}).get("completion_tokens", tokens)
    if tokens is None:
        raise CheckFailed(f"{prompt.name}: the stream gave no usage")
    return GoldenAnswer(prompt=prompt.name, text=text, completion_tokens=tokens)


def parsed(prompt: GoldenPrompt, text: str) -> dict:
    """The JSON object in an answer. Raises CheckFailed when it is none."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise CheckFailed(f"{prompt.name}: not an answer: {text[:300]}")
    return data


def differences(expected: list[GoldenAnswer], found: list[GoldenAnswer]) -> list[str]:
    """Where `found` differs from `expected`, a line a prompt: token ids where both have them, and text, and counts."""
    by_name = {answer.prompt: answer for answer in found}
    lines = [f"{name}: nothing to compare with" for name in by_name.keys() - {want.prompt for want in expected}]
    for want in expected:
        got = by_name.get(want.prompt)
        if got is None:
            lines.append(f"{want.prompt}: no answer")
        elif want.token_ids is not None and got.token_ids is not None and want.token_ids != got.token_ids:
            same = common(want.token_ids, got.token_ids)
            lines.append(f"{want.prompt}: tokens differ from position {same} of {len(want.token_ids)}")
        elif want.text != got.text:
            same = common(want.text, got.text)
            lines.append(f"{want.prompt}: text differs from character {same} of {len(want.text)}")
        elif want.completion_tokens != got.completion_tokens:
            lines.append(f"{want.prompt}: {got.completion_tokens} tokens, expected {want.completion_tokens}")
    return lines


def common(a, b) -> int:
    """Length of the common start of two sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
