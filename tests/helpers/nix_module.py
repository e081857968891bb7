"""Evaluate the NixOS module in a process of its own, against nixpkgs' real lib where it is, or its stand-in."""

import json
import os

from appliance.documents import Plan, Worker
from tests.helpers.nix_environment import PROJECT, in_nix_environment

LIB_SETTING = "APPLIANCE_NIXPKGS_LIB"
LIB_IN_STORE = "/nix/store/spjcdg6wiyqlnq0nv3ljxyw0c4g0zp2r-source"
"""Where the tree of nix-community/nixpkgs.lib, de42d44212d2, lies in a store that has it: its hash gives the path."""

STANDIN = f"{PROJECT}/tests/nix/module/standin/lib.nix"
EVALUATE = f"{PROJECT}/tests/nix/module/evaluate.nix"


class NixError(Exception):
    """What nix said when an evaluation failed."""


def value_of(expression: str):
    """The value of a Nix expression. Raises NixError."""
    done = in_nix_environment("nix", "eval", "--impure", "--json", "--expr", expression)
    if done.returncode != 0:
        raise NixError(done.stderr)
    return json.loads(done.stdout)


def real_lib() -> str | None:
    """The path of nixpkgs' own lib, as Nix sees it, if it is anywhere."""
    tree = os.environ.get(LIB_SETTING) or LIB_IN_STORE
    return f"{tree}/lib" if value_of(f"builtins.pathExists (/. + {json.dumps(tree)})") else None


def evaluate(module: str, attribute: str = "", lib: str | None = None, **changes: str) -> dict | list:
    """The configuration that `module` (Nix text) makes, or one attribute of it: see tests/nix/module/evaluate.nix."""
    lib = lib or real_lib() or STANDIN
    given = " ".join(f"{name} = {json.dumps(value)};" for name, value in changes.items())
    wanted = f"result.{attribute}" if attribute else "result"
    return value_of(f"(import {EVALUATE} {{ lib = import {lib}; module = {module}; {given} }}).{wanted}")


def example(name: str, changes: str = "") -> str:
    """The module of nix/examples/NAME.nix, with definitions of services.sglang-appliance beside it.

    What is changed wins over the example.
    """
    beside = f"{{ lib, ... }}: {{ services.sglang-appliance = {{ {changes} }}; }}"
    return f"{{ imports = [ {PROJECT}/nix/examples/{name}.nix ({beside}) ]; }}"


def module_of(plan: Plan, **changes) -> str:
    """The module that makes `plan`; `changes` are options of services.sglang-appliance beside it."""
    options = {
        "enable": True,
        "topology": plan.topology,
        "engine": {"version": plan.engine.version, "device": plan.engine.device},
        "model": {"path": plan.model.path, "servedName": plan.model.served_name},
        "startTimeout": plan.start_timeout_s,
        "stopTimeout": plan.stop_timeout_s,
        "workers": {worker.name: worker_options(worker) for worker in plan.workers},
    }
    if plan.router is not None:
        options["router"] = {
            "port": plan.router.port,
            "metricsPort": plan.router.metrics_port,
            "settings": settings_of(plan.router.args),
        }
    return f"{{ services.sglang-appliance = builtins.fromJSON {json.dumps(json.dumps(options | changes))}; }}"


def worker_options(worker: Worker) -> dict:
    """The options of one worker."""
    return {
        "role": worker.role,
        "gpus": worker.gpus,
        "numaNode": worker.numa_node,
        "port": worker.port,
        "bootstrapPort": worker.bootstrap_port,
        "ncclPort": worker.nccl_port,
        "settings": settings_of(worker.args),
        "environment": worker.env,
    }


def settings_of(args: list[str]) -> dict:
    """Arguments as `settings`: a flag without a value is true, and numbers are numbers."""
    settings: dict = {}
    for word in args:
        if word.startswith("--"):
            flag = word.removeprefix("--")
            settings[flag] = True
        else:
            settings[flag] = int(word) if word.isdigit() else word
    return settings


def examples() -> list[str]:
    """The names of all examples."""
    return sorted(path.stem for path in (PROJECT / "nix/examples").glob("*.nix"))
