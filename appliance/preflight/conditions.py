"""When rules apply: conditions that several of them share."""

from appliance.preflight.facts import Facts
from appliance.preflight.rule import Condition

GPUS = Condition(("machine.gpus",), lambda facts: bool(facts.machine.gpus), "the machine has no NVIDIA GPU")
SEVERAL_GPUS = Condition(
    ("machine.gpus",), lambda facts: len(facts.machine.gpus) > 1, "the machine has fewer than two NVIDIA GPUs"
)
PLAN = Condition(("plan",), lambda facts: True, "")
CUDA_PLAN = Condition(("plan",), lambda facts: facts.plan.engine.device == "cuda", "the plan is for CPUs")
PD_PLAN = Condition(("plan",), lambda facts: facts.plan.topology == "pd", "the plan does not part prefill and decode")
GROUP_PLAN = Condition(
    ("plan",),
    lambda facts: any(len(worker.gpus) > 1 for worker in facts.plan.workers),
    "no worker of the plan has several GPUs",
)
SPECULATION = Condition(("plan",), lambda facts: speculates(facts), "the plan does not speculate")


def speculates(facts: Facts) -> bool:
    """Whether any worker of the plan drafts tokens."""
    return any(word.split("=")[0] == "--speculative-algorithm" for w in facts.plan.workers for word in w.args)
