"""Text for people: at most 80 columns, and nothing in it that a terminal would obey."""

import re
import textwrap

WIDTH = 80
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, and marks that turn the direction of writing: names come from other people's files."""


def printable(text: str) -> str:
    """`text` on one line, with a question mark for each character that is an order and no sign."""
    return CONTROL.sub("?", text)


def wrapped(text: str, indent: str = "", label: str = "") -> list[str]:
    """`text` after a label, continued below its own start. Words are kept whole: a path could not be copied else."""
    first = indent + label
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]
