"""The golden prompts: short, long, unicode, repeated, with a shared prefix; both APIs, streamed and not."""

from dataclasses import dataclass
from typing import Literal

PARAGRAPH = (
    "A prefill worker reads the whole prompt at once and fills the cache of keys and values. A decode worker takes "
    "that cache over and writes one token after another. Between them lies a link, and what crosses it must arrive "
    "whole: every layer, every head, every position. If one page is missing the answer is still fluent, only wrong. "
)
PREFIX = "You are the night operator of a machine with eight GPUs. Read the log below and answer in one line.\n"


@dataclass(frozen=True)
class GoldenPrompt:
    """One request. `content` is the prompt of a completion, or the messages of a chat as (role, text)."""

    name: str
    api: Literal["completion", "chat"]
    content: str | tuple[tuple[str, str], ...]
    max_tokens: int = 24
    stream: bool = False


PROMPTS = [
    GoldenPrompt("short", "completion", "Hello"),
    GoldenPrompt("one character", "completion", "7"),
    GoldenPrompt("sentence", "completion", "The quick brown fox jumps over the lazy dog.", max_tokens=48),
    GoldenPrompt("same again", "completion", "The quick brown fox jumps over the lazy dog.", max_tokens=48),
    GoldenPrompt("unicode", "completion", "Grüße, 世界! Привет; naïve café – ½ € ✓ 🙂 مرحبا"),
    GoldenPrompt("several pages", "completion", PARAGRAPH * 12, max_tokens=32),
    GoldenPrompt("several pages, streamed", "completion", PARAGRAPH * 8 + "And then?", max_tokens=32, stream=True),
    GoldenPrompt("shared prefix, first", "completion", PREFIX + "22:41 decode: out of pages"),
    GoldenPrompt("shared prefix, second", "completion", PREFIX + "22:42 prefill: link down"),
    GoldenPrompt("code", "completion", "def add(a, b):\n\treturn a + b\n\n\nassert add(2, 2) ==", stream=True),
    GoldenPrompt("chat", "chat", (("user", "Which worker reads the prompt?"),)),
    GoldenPrompt("chat, streamed", "chat", (("user", "Which worker writes the answer?"),), stream=True),
    GoldenPrompt(
        "chat, several turns",
        "chat",
        (("system", PREFIX), ("user", "Is it up?"), ("assistant", "It is."), ("user", "Are you sure? 🙂")),
        max_tokens=32,
    ),
    GoldenPrompt("long answer", "completion", "Count:", max_tokens=128),
]
