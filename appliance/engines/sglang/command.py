"""From a planned worker to the command and environment of one SGLang server."""

import sys

from appliance.documents import Plan, Worker
from appliance.engines.sglang import cpu
from appliance.errors import InputError

FIELD_OF_FLAG = {
    "--model-path": "model.path",
    "--model": "model.path",
    "--served-model-name": "model.served_name",
    "--device": "engine.device",
    "--host": "host",
    "--port": "port",
    "--tp-size": "tp_size",
    "--tensor-parallel-size": "tp_size",
    "--tp": "tp_size",
    "--nccl-port": "nccl_port",
    "--disaggregation-mode": "role",
    "--disaggregation-bootstrap-port": "bootstrap_port",
}


def command(plan: Plan, worker: Worker) -> list[str]:
    """The argument vector that serves `worker`. Raises InputError where `args` repeats what a field says."""
    for argument in worker.args:
        flag = argument.split("=", 1)[0]
        field = field_of(flag)
        if field is not None:
            raise InputError(f"worker {worker.name}: {flag} in args; expected it in the plan's field {field}")
    words = [sys.executable, "-W", "ignore::UserWarning", "-m", "sglang.launch_server"]
    words += ["--model-path", plan.model.path, "--served-model-name", plan.model.served_name]
    words += ["--device", plan.engine.device, "--host", plan.host, "--port", str(worker.port)]
    words += ["--tp-size", str(worker.tp_size)]
    if worker.nccl_port is not None:
        words += ["--nccl-port", str(worker.nccl_port)]
    if worker.role != "aggregated":
        words += ["--disaggregation-mode", worker.role]
    if worker.bootstrap_port is not None:
        words += ["--disaggregation-bootstrap-port", str(worker.bootstrap_port)]
    return words + worker.args


def field_of(flag: str) -> str | None:
    """The plan's field that sets `flag`, also where it is abbreviated, as SGLang's parser allows; None for others."""
    if len(flag) < len("--x") or not flag.startswith("--"):
        return None
    return next((field for known, field in FIELD_OF_FLAG.items() if known.startswith(flag)), None)


def environment(plan: Plan, worker: Worker) -> dict[str, str]:
    """What SGLang needs in its environment besides the plan's own `env`."""
    return cpu.environment() if plan.engine.device == "cpu" else {}
