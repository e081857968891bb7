"""The live page: what runs, as `appliance status` knows it, in the look of the report."""

from html import escape
from importlib.resources import files

from appliance.web.page import page

TABLES = [
    (
        "processes",
        "Workers and router",
        ["process", "phase", "answers", "pid", "port", "RSS MiB", "restarts", "last error"],
    ),
    (
        "loads",
        "Load",
        ["worker", "running", "waiting", "KV cache in use", "output tok/s", "prompt tokens", "output tokens"],
    ),
    ("transfers", "KV transfer, since the start", ["worker", "transfers", "MB", "ms, mean", "GB/s, mean"]),
    ("gpus", "GPUs", ["GPU", "name", "MiB used", "MiB", "W", "degrees C", "slowed by"]),
    ("findings", "Findings of preflight", ["severity", "rule", "evidence"]),
]


def status_page() -> str:
    """HTML of the page; its script fills the tables from status.json, which its own server gives."""
    parts = [
        '<p id="trouble" class="loud" role="status" hidden></p><p id="lost" class="loud-if-any" role="status"></p>',
        '<p id="run"></p><p class="soft">seen at <span id="when"></span>, every 2 s</p>',
    ]
    for name, caption, columns in TABLES:
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
        parts.append(
            f'<h2>{escape(caption)}</h2><div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
            f'<table id="{name}"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>'
        )
    parts.append('<p class="soft" id="checked"></p>')
    script = files("appliance.web").joinpath("live.js").read_text(encoding="utf-8")
    return page("SGLang appliance", "".join(parts), [script], connects="'self'")
