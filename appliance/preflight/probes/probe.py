"""What a live probe is, and what it may look at."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from appliance.documents import MachineReport, Plan, Worker
from appliance.launch.environment import worker_environment


@dataclass(frozen=True)
class Subject:
    """What is probed: this machine, for a plan or for none."""

    machine: MachineReport
    plan: Plan | None = None
    model_path: str | None = None
    """Folder of the checkpoint, where it is here."""
    patience: float = 1.0
    """What every time limit is multiplied by: a machine under load needs more."""
    simulated: dict | None = None
    """Tests only: a simulated device in place of CUDA, with the bandwidth of each pair in GB/s."""

    def gpus(self) -> list[int]:
        """The GPUs of the plan, in its order, or all of the machine's; each once."""
        planned = [gpu for worker in self.workers() for gpu in worker.gpus]
        return list(dict.fromkeys(planned)) if self.plan else [gpu.index for gpu in self.machine.gpus]

    def workers(self) -> list[Worker]:
        """The plan's workers."""
        return list(self.plan.workers) if self.plan else []

    def rank_map(self) -> list[tuple[int, int]]:
        """(source, target) GPU of each rank that sends its KV cache; none without a plan that parts the two."""
        return self.plan.rank_pairs() if self.plan else []

    def device(self) -> str:
        """What GPU probes run on, by name."""
        if self.simulated is not None:
            return "simulated"
        names = dict.fromkeys(gpu.name or "unknown GPU" for gpu in self.machine.gpus)
        return ", ".join(names) or "no GPU"

    def environment(self, worker: Worker | None = None) -> dict[str, str]:
        """The environment of a probe's process: a worker's own where one is named, and GPUs in bus order always."""
        env = worker_environment(self.plan, worker, os.environ) if worker and self.plan else dict(os.environ)
        if worker is None:
            env.pop("CUDA_VISIBLE_DEVICES", None)
        return env | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True)
class LiveProbe:
    """One probe. `module` is run with the specification as JSON on standard input, and tells lines of JSON."""

    name: str
    title: str
    module: str
    limit_s: float
    why_not: Callable[[Subject], str | None]
    """Why it does not apply to a subject, or None."""
    specify: Callable[[Subject], dict]
    environment: Callable[[Subject], dict[str, str]] = Subject.environment
    tidy: Callable[[dict], None] = lambda specification: None
    """Takes away what a killed process would leave behind, by the specification that it was given."""
    on_gpu: bool = False


def needs_gpu(subject: Subject) -> str | None:
    """Why a probe of GPUs does not apply: there is none."""
    return None if subject.machine.gpus or subject.simulated is not None else "the machine has no NVIDIA GPU"
