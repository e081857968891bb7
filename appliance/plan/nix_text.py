"""A plan as the configuration of the NixOS module `services.sglang-appliance`."""

import re
from collections.abc import Iterator
from decimal import Decimal

from appliance.documents import Plan, PlannedModel, Router, Worker
from appliance.errors import InputError

BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
KEYWORDS = {"assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"}
WIDTH = 118
Value = bool | int | float | str | None | list | dict


def nix_text(plan: Plan) -> str:
    """The module's configuration as Nix text: one attribute set, with the plan's reasons as comments.

    Raises InputError for a plan that the module has no option for (workers that share a GPU).
    """
    if plan.shared_gpus:
        raise InputError("--format nix: two workers share a GPU; the NixOS module gives each its own")
    lines = [*comments(plan.reasons, ""), "{", "  services.sglang-appliance = {"]
    head = {
        "enable": True,
        "topology": plan.topology,
        "engine": {"version": plan.engine.version, "device": plan.engine.device},
        "model": of_model(plan.model),
        "host": plan.host,
        "startTimeout": plan.start_timeout_s,
        "stopTimeout": plan.stop_timeout_s,
    }
    for name, value in head.items():
        lines += attribute(name, value, "    ")
    for worker in plan.workers:
        lines += [
            "",
            *comments(worker.reasons, "    "),
            *attribute(f"workers.{key(worker.name)}", of_worker(worker), "    "),
        ]
    if plan.router is not None:
        lines += ["", *comments(plan.router.reasons, "    "), *attribute("router", of_router(plan.router), "    ")]
    return "\n".join([*lines, "  };", "}"]) + "\n"


def of_model(model: PlannedModel) -> dict[str, Value]:
    """The options of the model."""
    options = {"path": model.path, "servedName": model.served_name, "repo": model.repo, "revision": model.revision}
    return {name: value for name, value in options.items() if value is not None}


def of_worker(worker: Worker) -> dict[str, Value]:
    """The options of a worker."""
    options: dict[str, Value] = {
        "role": worker.role,
        "gpus": worker.gpus,
        "numaNode": worker.numa_node,
        "tpSize": worker.tp_size,
        "port": worker.port,
        "bootstrapPort": worker.bootstrap_port,
        "ncclPort": worker.nccl_port,
        "settings": settings(worker.args),
        "environment": dict(worker.env),
    }
    return {name: value for name, value in options.items() if value is not None and value != {}}


def of_router(router: Router) -> dict[str, Value]:
    """The options of the router."""
    options = {
        "host": router.host,
        "port": router.port,
        "metricsPort": router.metrics_port,
        "settings": settings(router.args),
        "environment": dict(router.env),
    }
    return {name: value for name, value in options.items() if value is not None and value != {}}


def settings(args: list[str]) -> dict[str, Value]:
    """Argument words as attributes: --page-size 256 is page-size = 256, a switch is true, several words are a list."""
    found: dict[str, list[str]] = {}
    name = None
    for word in args:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            found[name] = [value] if equals else []
        elif name is not None:
            found[name].append(word)
        else:
            raise InputError(f"argument {word!r} belongs to no flag; expected --name value")
    return {name: typed(words) for name, words in found.items()}


def typed(words: list[str]) -> Value:
    """The value of an argument: true for a switch, a number where it is written as Nix writes it back, else text."""
    if not words:
        return True
    values = [number(word) for word in words]
    return values[0] if len(values) == 1 else values


def number(word: str) -> int | float | str:
    """A number whose text is the same again, else the text itself."""
    if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", word):
        return int(word)
    if re.fullmatch(r"-?(0|[1-9][0-9]*)\.[0-9]*[1-9]", word) and f"{float(word)!r}" == word and len(word) <= 7:
        return float(word)
    return word


def attribute(name: str, value: Value, indent: str) -> Iterator[str]:
    """The lines of `name = value;`."""
    if isinstance(value, dict):
        yield f"{indent}{name} = {{"
        for inner, entry in value.items():
            yield from attribute(key(inner), entry, indent + "  ")
        yield f"{indent}}};"
    else:
        yield f"{indent}{name} = {expression(value)};"


def expression(value: Value) -> str:
    """A value on one line. Negative numbers in lists are in brackets, as Nix asks."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        inner = [
            f"({expression(one)})" if isinstance(one, int | float) and one < 0 else expression(one) for one in value
        ]
        return f"[ {' '.join(inner)} ]" if inner else "[ ]"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")  # Nix knows no 1e-05
    return "null" if value is None else repr(value)


def string(text: str) -> str:
    """A Nix string: what would end it or be taken for more than text is escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def key(name: str) -> str:
    """An attribute's name, in quotes where it is not a plain one."""
    return name if BARE.fullmatch(name) and name not in KEYWORDS else string(name)


def comments(reasons: list[str], indent: str) -> Iterator[str]:
    """Reasons as comment lines, each once; control characters would end a comment."""
    for reason in dict.fromkeys(reasons):
        plain = "".join(character if character.isprintable() else "?" for character in reason)
        yield f"{indent}# {plain}"
