"""All rules: whatever is in the modules of `appliance.preflight.rules`. A new file there is a new theme."""

import importlib
import pkgutil
from functools import cache

from appliance.errors import InputError
from appliance.preflight import rules
from appliance.preflight.rule import Rule


@cache
def catalogue() -> dict[str, Rule]:
    """Every rule by id, in the order of files and of their places in them."""
    found: dict[str, Rule] = {}
    for module in pkgutil.iter_modules(rules.__path__):
        names = vars(importlib.import_module(f"{rules.__name__}.{module.name}"))
        for value in names.values():
            if isinstance(value, Rule):
                if found.get(value.id, value) is not value:
                    raise ValueError(f"two rules are called {value.id!r}")
                found[value.id] = value
    return found


def find(id: str) -> Rule:
    """The rule called `id`. Raises InputError that names those like it."""
    known = catalogue()
    if id not in known:
        from difflib import get_close_matches

        close = get_close_matches(id, known, n=3) or sorted(known)[:3]
        raise InputError(f"no rule is called {id!r}; expected one of `preflight --list`, such as {', '.join(close)}")
    return known[id]
