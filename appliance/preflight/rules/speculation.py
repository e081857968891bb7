"""Drafted tokens: whether the model has what drafts them, how deep, and what the kernels take."""

from appliance.preflight.conditions import CUDA_PLAN, SPECULATION
from appliance.preflight.facts import Facts
from appliance.preflight.reading import arguments, release, valued
from appliance.preflight.rule import Undecided, rule

BY_LAYERS = ("EAGLE", "NEXTN", "MTP")
FAST_DEEPEST = 3
TOKENS_OF_LIMIT = "sparse decode: tokens a call"
SPEC_V2 = "SGLANG_ENABLE_SPEC_V2"
WITHOUT_SPEC_V2 = (0, 5, 23)
"""The first release that is known to have no such variable: its source was read."""


@rule(
    "speculation-without-drafts",
    "Speculation by layers that the model does not have",
    "error",
    needs=["plan", "model.mtp"],
    only_if=[SPECULATION],
    fix="DSPARK for V4-Flash-0731, EAGLE or NEXTN for checkpoints with MTP layers, or a --speculative-draft-model-path",
    reference="vllm-project/vllm#41834",
)
def speculation_without_drafts(facts: Facts):
    """The server fails while it loads, or drafts with weights that were never trained: BOS in mid-output."""
    if facts.model.mtp.count is None:
        raise Undecided("model.mtp.count")
    for worker in facts.plan.workers:
        args = arguments(worker)
        method = args.get("--speculative-algorithm", "").upper()
        own = "--speculative-draft-model-path" not in args
        if method in BY_LAYERS and own and facts.model.mtp.count == 0:
            yield f"worker {worker.name}: {method}; the checkpoint has no MTP layer ({facts.model.mtp.basis})"
        elif method in BY_LAYERS and own and facts.model.mtp.count > (facts.model.mtp.declared or 99):
            stages, declared = facts.model.mtp.count, facts.model.mtp.declared
            yield f"worker {worker.name}: {method}; {stages} draft stages where {declared} is declared: DSPARK's"


@rule(
    "speculation-deep",
    "Speculation deeper than has paid off",
    "note",
    needs=["plan"],
    only_if=[SPECULATION],
    fix="sweep --speculative-num-steps from 1 to 3 with `appliance bench`",
    reference="vllm-project/recipes#967",
)
def speculation_deep(facts: Facts):
    """Beyond three steps acceptance has fallen faster than the drafts grew: slower, with more memory."""
    for worker in facts.plan.workers:
        steps = valued(worker, ["--speculative-num-steps"])
        if steps and steps > FAST_DEEPEST:
            yield f"worker {worker.name}: {steps:.0f} steps"


@rule(
    "speculation-loads-twice",
    "An engine that loads the model twice to speculate",
    "warning",
    needs=["plan"],
    only_if=[SPECULATION],
    fix=f'environment.{SPEC_V2} = "1";',
    reference="local-inference-lab/rtx6kpro; sgl-project/sglang#11762",
)
def speculation_loads_twice(facts: Facts):
    """Releases before the second speculative worker became the only one need a variable, or run out of memory."""
    version = release(facts.plan.engine.version) or WITHOUT_SPEC_V2
    for worker in facts.plan.workers:
        speculates = "--speculative-algorithm" in arguments(worker)
        if speculates and version < WITHOUT_SPEC_V2 and worker.env.get(SPEC_V2, "0") in ("0", ""):
            yield f"worker {worker.name}: SGLang {facts.plan.engine.version}, {SPEC_V2} unset"


@rule(
    "speculation-over-kernel",
    "More tokens a decode call than the sparse kernel takes",
    "warning",
    needs=["plan", "engine.limits"],
    only_if=[SPECULATION, CUDA_PLAN],
    fix="settings.max-running-requests = the kernel's tokens divided by draft tokens;",
    reference="sgl-project/sglang#33407, #33943",
)
def speculation_over_kernel(facts: Facts):
    """Drafts multiply the tokens of a call: beyond the kernel's bound it crashes or falls to the prefill kernel."""
    limit = next((entry for entry in facts.engine.limits if entry.name == TOKENS_OF_LIMIT), None)
    if limit is None:
        return
    if limit.values is None:
        raise Undecided(f"engine.limits[{TOKENS_OF_LIMIT}].values")
    for worker in facts.plan.workers:
        drafts = valued(worker, ["--speculative-num-draft-tokens", "--speculative-dspark-block-size"])
        requests = valued(worker, ["--max-running-requests", "--cuda-graph-max-bs-decode"])
        if worker.role != "prefill" and drafts and requests and drafts * requests > max(limit.values):
            said = f"{requests:.0f} requests x {drafts:.0f} drafts, the kernel takes {max(limit.values)} tokens"
            yield f"worker {worker.name}: {said}"
