"""NIXL between two processes in main memory: works without a GPU, and shows backend and transports."""

from appliance.preflight.probes.nixl_pair import MODULE
from appliance.preflight.probes.probe import LiveProbe, Subject

UCX_SAYS = {"UCX_PROTO_INFO": "y"}
"""UCX then prints which transport carries which size (UCX documentation, environment variables)."""


def ends(subject: Subject) -> tuple:
    """The workers that stand for both processes: prefill and decode, or None for a plan that has no such pair."""
    by_role = {worker.role: worker for worker in reversed(subject.workers())}
    return by_role.get("prefill"), by_role.get("decode")


def missing_nixl(subject: Subject) -> str | None:
    """Why NIXL cannot be measured: it is not installed in this environment."""
    from appliance.recon.engine import installed

    return None if installed("nixl") else "nixl is not installed in this environment"


def specify(subject: Subject, memory: str = "DRAM", my_gpu: int = 0, their_gpu: int = 0) -> dict:
    """Backend of the plan, and the environment of the worker that receives."""
    sender, receiver = ends(subject)
    return {
        "memory": memory,
        "backend": (sender.env if sender else {}).get("SGLANG_DISAGGREGATION_NIXL_BACKEND", "UCX"),
        "my_gpu": my_gpu,
        "their_gpu": their_gpu,
        "my_node": sender.numa_node if sender else None,
        "their_node": receiver.numa_node if receiver else None,
        "peer_environment": subject.environment(receiver) | UCX_SAYS,
    }


PROBE = LiveProbe(
    name="nixl-dram",
    title="NIXL in main memory",
    module=MODULE,
    limit_s=10,
    why_not=missing_nixl,
    specify=specify,
    environment=lambda subject: subject.environment(ends(subject)[0]) | UCX_SAYS,
)
