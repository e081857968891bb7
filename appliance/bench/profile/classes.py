"""The class of a kernel by its name: see kernel_classes.toml."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from appliance.documents.base import Part

OTHER = "other"


class Pattern(Part):
    """A row of kernel_classes.toml, whose head says what each field is."""

    kernel_class: str
    pattern: str
    kernel: str | None = None
    file: str | None = None
    library: str | None = None


@cache
def patterns() -> list[Pattern]:
    """All rows, in the order in which they are tried."""
    text = (files("appliance.bench.profile") / "kernel_classes.toml").read_text(encoding="utf-8")
    return [Pattern(kernel_class=row.pop("class"), **row) for row in tomllib.loads(text)["pattern"]]


@cache
def compiled() -> list[tuple[re.Pattern, str]]:
    """Each pattern ready to search, with its class."""
    return [(re.compile(row.pattern), row.kernel_class) for row in patterns()]


def class_of(name: str) -> str:
    """The class of the kernel called `name`; "other" where the table has none for it."""
    return next((kernel_class for pattern, kernel_class in compiled() if pattern.search(name)), OTHER)
