"""Become one worker: check, bind, and exec its engine in place of this process."""

import os
import sys

from appliance.documents import Plan, Worker
from appliance.engines.sglang import command as sglang
from appliance.engines.sglang import release
from appliance.engines.sglang.health import generates
from appliance.engines.smg import command as smg
from appliance.engines.smg.health import has_workers, is_alive
from appliance.errors import InputError
from appliance.launch import numa, systemd
from appliance.launch.environment import router_environment, worker_environment
from appliance.launch.parent import die_with_parent

SUPERVISOR_PID = "APPLIANCE_SUPERVISOR_PID"
"""Set by a supervisor that the worker must not outlive."""


def find(plan: Plan, name: str) -> Worker:
    """The plan's worker called `name`. Raises InputError that names those there are."""
    worker = plan.worker(name)
    if worker is None:
        raise InputError(f"the plan has no worker {name!r}; expected one of {', '.join(w.name for w in plan.workers)}")
    return worker


def exec_worker(plan: Plan, name: str) -> None:
    """Replace this process by the engine of worker `name`. Returns only by raising InputError."""
    worker = find(plan, name)
    release.require(plan)
    words = sglang.command(plan, worker)
    env = worker_environment(plan, worker, os.environ)
    if worker.numa_node is not None:
        numa.bind(worker.numa_node)
    systemd.report_in_background(generates, generates, plan.url(worker.port), env)
    replace_process(words, env)


def exec_router(plan: Plan) -> None:
    """Replace this process by the plan's router. Returns only by raising InputError."""
    if plan.router is None:
        raise InputError(f"the plan has no router: topology {plan.topology!r} is served by its worker")
    env = router_environment(plan, os.environ)
    systemd.report_in_background(has_workers, is_alive, plan.url(plan.router.port), env)
    replace_process(smg.command(plan), env)


def replace_process(words: list[str], env: dict[str, str]) -> None:
    """execve, after tying this process to its supervisor's life where it has one. Raises InputError."""
    supervisor = env.pop(SUPERVISOR_PID, None)
    if supervisor is not None and not die_with_parent(int(supervisor)):
        sys.exit(f"supervisor {supervisor} is gone")
    try:
        os.execve(words[0], words, env)
    except OSError as error:
        raise InputError(f"{words[0]}: cannot be started ({error.strerror})") from None
