"""Ranks: whether tensor, expert and data parallelism fit the GPUs, the model and its kernels."""

from appliance.preflight.conditions import CUDA_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import arguments, valued
from appliance.preflight.rule import Found, Undecided, rule

EP = ("--ep-size", "--expert-parallel-size", "--ep")
DP = ("--dp-size", "--data-parallel-size")


@rule(
    "tp-is-not-gpus",
    "A worker's tensor parallelism is not its number of GPUs",
    "error",
    needs=["plan"],
    only_if=[CUDA_PLAN],
    fix="tp_size = number of GPUs (divided by --pp-size)",
    reference="Lei-010/hermes-agent, silent default",
)
def tp_is_not_gpus(facts: Facts):
    """GPUs that are paid for and idle, or a rank without a GPU."""
    for worker in facts.plan.workers:
        stages = valued(worker, ("--pp-size", "--pipeline-parallel-size")) or 1
        if worker.tp_size * stages != len(worker.gpus):
            yield f"worker {worker.name}: TP {worker.tp_size} x PP {stages:.0f}, {len(worker.gpus)} GPUs"


@rule(
    "ep-over-tp",
    "Expert parallelism wider than tensor parallelism",
    "error",
    needs=["plan"],
    only_if=[PLAN],
    fix="settings.ep-size = at most tp_size, and a divisor of it;",
    reference="Lei-010/hermes-agent",
)
def ep_over_tp(facts: Facts):
    """Experts are shared out among the ranks of the tensor-parallel group: there are no others."""
    for worker in facts.plan.workers:
        ep = valued(worker, EP)
        if ep and (ep > worker.tp_size or worker.tp_size % ep):
            yield f"worker {worker.name}: EP {ep:.0f}, TP {worker.tp_size}"


@rule(
    "dp-attention-without-dp",
    "Data-parallel attention without data parallelism",
    "error",
    needs=["plan"],
    only_if=[PLAN],
    fix="settings.dp-size = a divisor of tp_size that is more than 1;",
    reference="Lei-010/hermes-agent",
)
def dp_attention_without_dp(facts: Facts):
    """`--enable-dp-attention` alone builds no group: the server runs as if it were not there."""
    for worker in facts.plan.workers:
        dp = valued(worker, DP) or 1
        if "--enable-dp-attention" in arguments(worker) and (dp <= 1 or worker.tp_size % dp):
            yield f"worker {worker.name}: --enable-dp-attention with DP {dp:.0f}, TP {worker.tp_size}"


@rule(
    "heads-do-not-divide",
    "The model's heads or experts do not divide among the ranks",
    "error",
    needs=["plan", "model.heads"],
    only_if=[PLAN],
    fix="a tp_size that divides the number of heads (and ep-size that of experts)",
    reference="SGLang, srt/layers/linear.py: divide()",
)
def heads_do_not_divide(facts: Facts):
    """The server ends while it builds the model."""
    experts = facts.model.experts.routed if facts.model.experts else None
    for worker in facts.plan.workers:
        attention = worker.tp_size
        if "--enable-dp-attention" in arguments(worker):
            attention = max(1, worker.tp_size // int(valued(worker, DP) or 1))
        if facts.model.heads % attention:
            yield f"worker {worker.name}: {facts.model.heads} heads over {attention} ranks"
        ep = valued(worker, EP)
        if ep and experts and experts % ep:
            yield f"worker {worker.name}: {experts} experts over {ep:.0f} ranks"


@rule(
    "heads-without-kernel",
    "No kernel for this number of heads a rank",
    "warning",
    needs=["plan", "model.heads", "engine.limits"],
    only_if=[CUDA_PLAN],
    fix="a tp_size for which there is an instance",
    reference="vllm-project/vllm#55526, #56700",
)
def heads_without_kernel(facts: Facts):
    """Heads are padded to the next instance, which costs a multiple, or the dispatch fails: an error past the most."""
    known = {entry.name: entry.values for entry in facts.engine.limits if "heads a rank" in entry.name}
    instances = next((values for name, values in known.items() if "instance" in name), None)
    most = next((max(values) for name, values in known.items() if "at most" in name and values), None)
    if known and instances is None:
        raise Undecided("engine.limits[heads a rank].values")
    for worker in facts.plan.workers:
        heads = facts.model.heads // worker.tp_size
        if most and heads > most:
            yield Found(f"worker {worker.name}: {heads} heads a rank, at most {most}")
        elif instances and heads not in instances:
            yield f"worker {worker.name}: {heads} heads a rank; instances for {', '.join(map(str, instances))}"
