"""Pasted text as it comes: colours, carriage returns, odd bytes, shell fences."""

import re

# CSI sequences (colours, cursor), OSC sequences (titles), and other two-character escapes: ECMA-48
ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def as_text(data: bytes) -> str:
    """Text of pasted bytes: UTF-8 or UTF-16 by its mark, whatever cannot be decoded replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def clean(text: str) -> str:
    """`text` with line feeds only, tabs kept, and neither colours nor other control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    return UNPRINTABLE.sub("", ANSI.sub("", text))
