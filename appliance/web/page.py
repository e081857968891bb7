"""A whole page as text: its style and scripts within it, and a policy that lets it ask nobody for anything."""

import base64
import csv
import hashlib
import io
from html import escape
from importlib.resources import files

PARTS = files("appliance.web")
NUMBERS = "n"


def page(title: str, body: str, scripts: list[str] | None = None, connects: str = "'none'") -> str:
    """HTML of a page. `body` is HTML, `scripts` are run in order, `connects` is where they may connect to (CSP)."""
    style = PARTS.joinpath("look.css").read_text(encoding="utf-8")
    code = [PARTS.joinpath("theme.js").read_text(encoding="utf-8"), *(scripts or [])]
    hashes = " ".join(f"'sha256-{digest(script)}'" for script in code)
    policy = f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src {hashes}; img-src data:"
    policy += f"; connect-src {connects}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<div class="top"><h1>{escape(title)}</h1><button id="theme" type="button">Dark</button></div>
{body}
</main>
{"".join(f"<script>{script}</script>" for script in code)}
</body>
</html>
"""


def digest(text: str) -> str:
    """sha256 of an inline style or script, as a policy names it (CSP level 3)."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def table(caption: str, columns: list[str], rows: list[list[str]], classes: list[list[str]] | None = None) -> str:
    """A table that the keyboard reaches and that scrolls by itself. Cells are text; numbers are set to the right.

    classes: the class of each cell, where it has one.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for place, text in enumerate(row):
            names = [classes[number][place]] if classes and classes[number][place] else []
            names += [NUMBERS] if place and is_number(text) else []
            attribute = f' class="{" ".join(names)}"' if names else ""
            cells.append(
                f'<th scope="row"{attribute}>{escape(text)}</th>'
                if place == 0
                else f"<td{attribute}>{escape(text)}</td>"
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def is_number(text: str) -> bool:
    """Whether a cell begins as a number does."""
    return text.lstrip("+-").replace(".", "", 1)[:1].isdigit()


def download(name: str, columns: list[str], rows: list[list]) -> str:
    """A link to the numbers as CSV, which lie in the page."""
    text = io.StringIO()
    csv.writer(text).writerows([columns, *rows])
    data = base64.b64encode(text.getvalue().encode()).decode()
    return f'<p><a download="{escape(name, quote=True)}.csv" href="data:text/csv;base64,{data}">numbers (CSV)</a></p>'


def listed(pairs: list[tuple[str, str]]) -> str:
    """Names and what they are."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in pairs)}</dl>"
