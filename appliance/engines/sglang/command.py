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
        if flag in FIELD_OF_FLAG:
            raise InputError(
                f"worker {worker.name}: {flag} in args; expected it in the plan's field {FIELD_OF_FLAG[flag]}"
            )
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


def environment(plan: Plan, worker: Worker) -> dict[str, str]:
    """What SGLang needs in its environment besides the plan's own `env`."""
    return cpu.environment() if plan.engine.device == "cpu" else {}
