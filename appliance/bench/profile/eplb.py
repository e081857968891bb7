"""What placements of experts would give, from recorded counts: tensors of (passes, layers, experts).

Load is counted in assignments (a token sent to an expert). With expert parallelism a layer is done when its busiest
rank is; balancedness is mean over largest load, as SGLang computes it (srt/eplb/expert_distribution.py,
compute_utilization_rate).
"""

LIMITS = [
    "load is the number of assignments: an expert with few tokens still costs the reading of its weights",
    "recorded passes are prefill and decode as they came; the recorder does not tell them apart",
    "a replicated expert's load is split evenly among its replicas; the engine's dispatch may do otherwise",
    "all-to-all transfers, redundant experts' memory and the time of rebalancing are not counted",
    "routing follows the prompts: other traffic loads other experts",
]
LARGEST_BATCH = 64


def layers(counts) -> list[dict]:
    """The busiest expert of each layer that has experts, over all passes: see LayerLoad."""
    total = counts.sum(dim=0)
    return [
        {
            "layer": index,
            "busiest_expert": int(row.argmax()),
            "busiest_share": float(row.max() / row.sum()),
            "even_share": 1 / len(row),
            "experts_used": int((row > 0).sum()),
        }
        for index, row in enumerate(total)
        if int(row.sum())
    ]


def placements(earlier, later, ranks: list[int]) -> list[dict]:
    """Tensor parallelism, contiguous experts, and EPLB without and with redundant experts, on each number of ranks.

    EPLB is fitted to the counts of `earlier`; everything is judged by `later`.
    """
    experts = later.shape[2]
    found = []
    for count in ranks:
        even = {"busiest_rank_share": 1 / count, "balancedness": 1.0, "slowdown": 1.0}
        found.append({"name": "TP (each rank a slice of every expert)", "ranks": count, "redundant_experts": 0} | even)
        contiguous = later.unflatten(2, (count, experts // count)).sum(dim=3).double()
        found.append({"name": "EP, contiguous", "ranks": count, "redundant_experts": 0} | judge(contiguous))
        for redundant in (0, count, 2 * count):
            name = f"EPLB, {redundant} redundant experts" if redundant else "EPLB, no redundant expert"
            judged = judge(eplb_loads(earlier, later, count, redundant))
            found.append({"name": name, "ranks": count, "redundant_experts": redundant} | judged)
    return found


def eplb_loads(earlier, later, ranks: int, redundant: int):
    """Loads of (passes, layers, ranks) where SGLang's own algorithm places the experts, over one node."""
    from sglang.srt.eplb.eplb_algorithms import deepseek

    physical = later.shape[2] + redundant
    placed, _, replicas = deepseek.rebalance_experts(
        weight=earlier.sum(dim=0),
        num_replicas=physical,
        num_groups=None,
        num_nodes=1,
        num_gpus=ranks,
        enable_hierarchical=False,
    )
    of_each_replica = later.double() / replicas.double()
    on_slots = of_each_replica.gather(2, placed.unsqueeze(0).expand(len(later), -1, -1))
    return on_slots.unflatten(2, (ranks, physical // ranks)).sum(dim=3)


def judge(loads) -> dict:
    """Figures of a Placement from loads of (passes, layers, ranks); layers without experts are left out."""
    loads = loads[:, loads.sum(dim=(0, 2)) > 0]
    largest, total = loads.amax(dim=2), loads.sum(dim=2)
    mean = total / loads.shape[2]
    ran = total > 0
    return {
        "busiest_rank_share": min(1.0, float((largest[ran] / total[ran]).mean())),
        "balancedness": min(1.0, float((mean[ran] / largest[ran]).mean())),
        "slowdown": max(1.0, float(largest.sum() / mean.sum())),
    }


def batches(counts, ranks: int) -> list[dict]:
    """Consecutive passes taken together, 1, 2, 4, ... of them: see BatchLoad."""
    counts = counts[:, counts.sum(dim=(0, 2)) > 0]
    found, passes = [], 1
    while passes <= min(LARGEST_BATCH, len(counts)):
        whole = len(counts) // passes * passes
        taken = counts[:whole].unflatten(0, (whole // passes, passes)).sum(dim=1)
        used = (taken > 0).sum(dim=2).double().mean()
        assignments = taken.sum(dim=2).double().mean()
        by_rank = taken.unflatten(2, (ranks, taken.shape[2] // ranks)).sum(dim=3).double()
        found.append(
            {
                "passes": passes,
                "assignments": float(assignments),
                "experts_used": float(used),
                "assignments_per_used_expert": float(assignments / used),
                "balancedness": judge(by_rank)["balancedness"],
                "ranks": ranks,
            }
        )
        passes *= 2
    return found
