"""NIXL between two processes in GPU memory: the first rank of the planned map, or one GPU with itself."""

from appliance.preflight.probes import nixl_dram
from appliance.preflight.probes.nixl_pair import MODULE
from appliance.preflight.probes.probe import LiveProbe, Subject, needs_gpu


def why_not(subject: Subject) -> str | None:
    """A simulated device has no memory that NIXL could register."""
    if subject.simulated is not None:
        return "a simulated device has no memory"
    return needs_gpu(subject) or nixl_dram.missing_nixl(subject)


def specify(subject: Subject) -> dict:
    """Within a worker's environment its first GPU is number 0; without a plan the first and the last GPU."""
    planned = all(nixl_dram.ends(subject))
    last = 0 if planned else len(subject.machine.gpus) - 1
    return nixl_dram.specify(subject, "VRAM", 0, last)


PROBE = LiveProbe(
    name="nixl-vram",
    title="NIXL in GPU memory",
    module=MODULE,
    limit_s=12,
    why_not=why_not,
    specify=specify,
    environment=lambda subject: nixl_dram.PROBE.environment(subject),
    on_gpu=True,
)
