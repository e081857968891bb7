"""What physics allows at best, beside what a cell reached: shares of a bound, never predictions.

Bounds as in appliance.plan.bounds, for the cell's own batch and lengths: a decode step reads the weights of a token's
path once and the KV cache of every request in flight, and with speculation yields as many tokens as were accepted. What
a prefix cache gave is no work of prefill. Without a data sheet (a CPU, an unknown GPU) nothing is said.
"""

from appliance.documents import Figure, LimitShare, MachineReport, ModelReport, Plan, RoleThroughput, Worker, Workload
from appliance.hardware.gpu_model import GpuModel, gpu_model
from appliance.plan import bounds
from appliance.plan.costs import link_of


def limits(
    plan: Plan, workload: Workload, figures: dict[str, Figure], model: ModelReport, machine: MachineReport
) -> list[LimitShare]:
    """The shares of a cell, as far as the machine's GPUs and the model are known."""
    names = {gpu.index: gpu.name for gpu in machine.gpus}
    sheets = {worker.name: gpu_model(names.get(worker.gpus[0])) if worker.gpus else None for worker in plan.workers}
    decoding = [worker for worker in plan.workers if worker.role != "prefill"]
    prefilling = [worker for worker in plan.workers if worker.role != "decode"]
    found = []
    if "output tok/s" in figures and workload.concurrency:
        accepted = figures["acceptance length"].median if "acceptance length" in figures else 1.0
        rates = [decode_rate(workload, len(decoding), worker, sheets[worker.name], model) for worker in decoding]
        if None not in rates:
            formula = (
                f"{workload.concurrency} in flight on {len(decoding)} workers: weights once a step, and KV cache of "
                f"{workload.input_tokens + workload.output_tokens // 2} tokens of each"
                + (f"; {accepted:g} tokens a step by speculation" if accepted != 1.0 else "")
            )
            limit = accepted * sum(rates)
            found.append(share("decode", figures["output tok/s"], limit, "tok/s", "memory bandwidth", formula))
    if "computed tok/s" in figures:
        bound = [bounds.prefill(model, sheets[worker.name], worker.tp_size) for worker in prefilling]
        if all(bound):
            limit = sum(one[0].value for one in bound)
            formula = f"{len(prefilling)} workers: {bound[0][0].formula}"
            found.append(share("prefill", figures["computed tok/s"], limit, "tok/s", "FLOP/s", formula))
    pairs = plan.rank_pairs()
    if "KV bandwidth" in figures and pairs and pairs[0][0] != pairs[0][1]:
        gb_s, way = link_of(pairs[0], machine)
        if gb_s is not None:
            found.append(share("KV transfer", figures["KV bandwidth"], gb_s, "GB/s", "link", way))
    return found


def decode_rate(
    workload: Workload, workers: int, worker: Worker, sheet: GpuModel | None, model: ModelReport
) -> float | None:
    """The most tokens a second of one of `workers` that share the requests; None where something is not known."""
    active, per_token = bounds.active_bytes(model), bounds.cache_bytes(model, worker.tp_size)
    if sheet is None or sheet.memory_gb_s is None or active is None or per_token is None:
        return None
    batch = workload.concurrency / workers
    context = workload.input_tokens + workload.output_tokens / 2
    bytes_a_step = active / worker.tp_size + batch * context * per_token
    return batch / (bytes_a_step / (sheet.memory_gb_s * 1e9))


def share(of: str, figure: Figure, limit: float, unit: str, binds: str, formula: str) -> LimitShare:
    """The measured median beside its limit."""
    return LimitShare(
        of=of,
        measured=figure.median,
        limit=float(f"{limit:.4g}"),
        unit=unit,
        share=float(f"{figure.median / limit:.3g}"),
        binds=binds,
        formula=formula,
    )


def per_gpu(plan: Plan, figures: dict[str, Figure]) -> float | None:
    """Output tokens a second of the topology by all its GPUs; None without GPUs."""
    gpus = {gpu for worker in plan.workers for gpu in worker.gpus}
    return round(figures["output tok/s"].median / len(gpus), 2) if gpus else None


def roles(plan: Plan, figures: dict[str, Figure]) -> list[RoleThroughput]:
    """Throughput of each role by that role's GPUs: prefill by the tokens that it computes, decode by what it writes."""
    found = []
    for role in dict.fromkeys(worker.role for worker in plan.workers):
        gpus = len({gpu for worker in plan.workers if worker.role == role for gpu in worker.gpus})
        reads = figures["computed tok/s"].median / gpus if gpus and role != "decode" else None
        writes = figures["output tok/s"].median / gpus if gpus and role != "prefill" else None
        found.append(
            RoleThroughput(
                role=role,
                gpus=gpus,
                input_tokens_per_s_per_gpu=None if reads is None else round(reads, 2),
                output_tokens_per_s_per_gpu=None if writes is None else round(writes, 2),
            )
        )
    return found
