"""Whether weights, cache and what else a rank needs fit a GPU's memory."""

from appliance.documents import Worker
from appliance.preflight.conditions import CUDA_PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import arguments, number
from appliance.preflight.rule import Found, Undecided, rule

MIB = 2**20
CONTEXT_MIB = 1_500
"""Room for a CUDA context and NCCL's buffers: an allowance, chosen and not measured."""
TIGHT = 0.93
"""Above the shares that public reports of sm_120 serve with; where the line is depends on model and batch."""
FULL = 1.0


def smallest_memory(facts: Facts, worker: Worker) -> int | None:
    """Memory of the worker's smallest GPU in MiB, or None."""
    known = {gpu.index: gpu.memory_mib for gpu in facts.machine.gpus}
    sizes = [known[index] for index in worker.gpus if known.get(index)]
    return min(sizes, default=None)


def weights_a_rank(facts: Facts, worker: Worker) -> int | None:
    """Bytes of weights on the fullest rank: as the model's report has it, else an equal share."""
    ep = number(arguments(worker).get("--ep-size")) or 1
    exact = [rank.bytes for rank in facts.model.ranks if (rank.tp, rank.ep) == (worker.tp_size, int(ep))]
    exact = exact or [rank.bytes for rank in facts.model.ranks if rank.tp == worker.tp_size]
    if exact:
        return min(exact)
    return facts.model.weight_bytes // worker.tp_size if facts.model.weight_bytes else None


@rule(
    "weights-do-not-fit",
    "The weights do not fit the GPUs",
    "error",
    needs=["plan", "model.weight_bytes", "machine.gpus[].memory_mib"],
    only_if=[CUDA_PLAN],
    fix="more GPUs a worker, a checkpoint of fewer bits, or topology single",
    reference="sgl-project/sglang#30272",
)
def weights_do_not_fit(facts: Facts):
    """Out of memory after the minutes that the load takes. Scales kept as fp32 have added 16 GB a rank."""
    for worker in facts.plan.workers:
        memory, weights = smallest_memory(facts, worker), weights_a_rank(facts, worker)
        holders = [other for other in facts.plan.workers if set(other.gpus) & set(worker.gpus)]
        if memory and weights and len(holders) * (weights / MIB + CONTEXT_MIB) >= memory:
            copies = f" in each of {len(holders)} workers" if len(holders) > 1 else ""
            yield f"worker {worker.name}: {weights / MIB:.0f} MiB of weights a rank{copies}, {memory} MiB a GPU"


@rule(
    "cache-too-small",
    "The KV cache cannot hold one context",
    "error",
    needs=["plan", "model.weight_bytes", "model.kv_cache", "machine.gpus[].memory_mib"],
    only_if=[CUDA_PLAN],
    fix="a shorter --context-length, KV cache in fp8, or more GPUs a worker",
    reference="SGLang, srt/model_executor: pool configurator",
)
def cache_too_small(facts: Facts):
    """The server starts, and refuses every request that is as long as it promised.

    An error for a context length that was planned, a warning for the model's own.
    """
    for worker in facts.plan.workers:
        memory, weights = smallest_memory(facts, worker), weights_a_rank(facts, worker)
        context = number(arguments(worker).get("--context-length")) or facts.model.context_length
        sizes = facts.model.kv_cache.bytes_per_token
        if not (memory and weights and context and sizes):
            continue
        fp8 = arguments(worker).get("--kv-cache-dtype", "").startswith("fp8") or facts.model.kv_cache.declared_dtype
        a_token = sizes.get("fp8" if fp8 else "bf16") or min(sizes.values())
        shared = 1 if facts.model.kv_cache.replicated else min(worker.tp_size, facts.model.kv_heads or worker.tp_size)
        need = context * a_token / shared / MIB
        share = number(arguments(worker).get("--mem-fraction-static")) or TIGHT
        free = memory * share - weights / MIB
        if 0 < free < need:
            said = f"{need:.0f} MiB a rank for {context:.0f} tokens, {free:.0f} MiB left by the weights"
            promised = "--context-length" in arguments(worker)
            yield Found(f"worker {worker.name}: {said}", severity=None if promised else "warning")


@rule(
    "memory-share-tight",
    "The static share of GPU memory leaves no room",
    "error",
    needs=["plan"],
    only_if=[CUDA_PLAN],
    fix="settings.mem-fraction-static = 0.88;",
    reference="local-inference-lab/rtx6kpro, 13 MiB short",
)
def memory_share_tight(facts: Facts):
    """CUDA graphs, NCCL and FlashInfer's workspace come on top: some MiB short, at the first long prompt.

    An error at 1 or more, a warning above 0.93.
    """
    for worker in facts.plan.workers:
        share = number(arguments(worker).get("--mem-fraction-static"))
        if share is not None and share > TIGHT:
            said = f"worker {worker.name}: --mem-fraction-static {share:g}"
            yield Found(said, severity=None if share >= FULL else "warning")


@rule(
    "host-memory-short",
    "Less host memory than the weights of one load",
    "warning",
    needs=["plan", "model.weight_bytes", "machine.memory_available_mib"],
    only_if=[CUDA_PLAN],
    fix="more memory, or --load-format with fewer ranks that load at once",
    reference="SGLang, srt/model_loader",
)
def host_memory_short(facts: Facts):
    """Each rank reads all shards through the page cache: what does not stay there is read from disk once a rank."""
    if facts.model.weight_bytes == 0:
        raise Undecided("model.weight_bytes")
    need, have = facts.model.weight_bytes // MIB, facts.machine.memory_available_mib
    if have < need:
        yield f"{have} MiB available, {need} MiB of weights"
