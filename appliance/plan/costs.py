"""A layout with its costs: what fits on each worker's GPUs, and what bounds its speed."""

from dataclasses import dataclass

from appliance.documents import Bound, CostedTopology, CostedWorker, Gpu, MachineReport, ModelReport, RankMemory
from appliance.hardware.gpu_model import GpuModel, gpu_model
from appliance.plan import bounds
from appliance.plan.groups import Links
from appliance.plan.layouts import Layout, Place
from appliance.plan.memory import GIB, fits, in_words, lacking, rank_memory
from appliance.plan.select import Selection

LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""One direction of a lane after encoding, by PCIe generation (PCI Express base specifications)."""
SHARED = 0.5
"""Share of a GPU for each of two workers on it."""

CASE = {
    "pd": [
        "for it: a short request does not wait behind a long prefill, nor does one stall the answers that are running",
        "against it: the weights are held twice; no public result of it on one PCIe machine shows more throughput "
        "(8x GB10: slower than TP8 for long prompts, vllm-project/vllm#41834; H200: no gain at 32k/512, "
        "sgl-project/sglang#24488). Measure it against the other two",
    ],
    "replicas": [
        "for it: nothing crosses between the workers, and a short request finds the other one: 0.57 s instead of "
        "63.9 s behind a prefill of 1M tokens (reported, vllm-project/vllm#51454)",
        "against it: the weights are held more than once, and a long prefill stalls the answers of its own worker",
    ],
    "single": [
        "for it: the weights are held once, so that most is left for KV cache, and one request has all bandwidth",
        "against it: a short request waits behind a long prefill (63.9 s behind 1M tokens, reported, "
        "vllm-project/vllm#51454)",
    ],
}


@dataclass(frozen=True)
class Wanted:
    """What a user asks of a plan's sizes. None: as much as fits."""

    context: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True)
class Costed:
    """A layout, its workers' memory, and the document's part about it."""

    layout: Layout
    memory: list[RankMemory | None]
    part: CostedTopology


def cost(
    topology: str, layout: Layout, model: ModelReport, machine: MachineReport, chosen: Selection, wanted: Wanted
) -> Costed:
    """The costs of one layout."""
    memory = memories(layout, model, chosen, wanted)
    asked = [wanted_of(place, layout, wanted) for place in layout]
    lack = [problem for each in zip(layout, memory, asked, strict=True) for problem in problems(*each)]
    return Costed(
        layout,
        memory,
        CostedTopology(
            topology=topology,
            fits=not lack,
            workers=[
                CostedWorker(
                    name=place.name,
                    gpus=list(place.gpus),
                    tp_size=len(place.gpus),
                    numa_nodes=[node for node in place.nodes if node is not None],
                    memory=one,
                )
                for place, one in zip(layout, memory, strict=True)
            ],
            bounds=bounds_of(layout, model, machine, chosen),
            reasons=[*lack, *sizes(layout, memory), *CASE[topology]],
        ),
    )


def memories(layout: Layout, model: ModelReport, chosen: Selection, wanted: Wanted) -> list[RankMemory | None]:
    """Memory of a rank of each worker, all with the same context."""
    share = SHARED if len({place.gpus for place in layout}) < len(layout) else 1.0

    def each(context: int | None) -> list[RankMemory | None]:
        return [
            rank_memory(model, chosen.memory_bytes, len(place.gpus), place.role, context, share) for place in layout
        ]

    first = each(wanted.context)
    if wanted.context is not None or None in first:
        return first
    longest = min(one.context for one in first)
    for place, one in zip(layout, first, strict=True):
        longest = min(longest, one.pool_tokens // (wanted_of(place, layout, wanted).concurrency or 1))
    return each(longest) if longest else first


def wanted_of(place: Place, layout: Layout, wanted: Wanted) -> Wanted:
    """What is asked of one worker: replicas share the requests out, and prefill holds one only until it is sent."""
    if wanted.concurrency is None or place.role == "decode":
        return wanted
    if place.role == "prefill":
        return Wanted(wanted.context)
    return Wanted(wanted.context, -(-wanted.concurrency // len(layout)))


def problems(place: Place, memory: RankMemory | None, wanted: Wanted) -> list[str]:
    """Why a worker does not fit, in words; nothing where it does."""
    if memory is None:
        return []
    if not fits(memory, wanted.context):
        least = f"one request of {wanted.context} tokens" if wanted.context else "any useful context"
        gib = max(lacking(memory, wanted.context) / GIB, 0.1)
        return [
            f"{place.name} does not fit {least} on {len(place.gpus)} GPUs: each lacks {gib:.1f} GiB; {in_words(memory)}"
        ]
    if wanted.concurrency and memory.concurrency < wanted.concurrency:
        return [
            f"{place.name} holds {memory.concurrency} requests of {memory.context} tokens at once, "
            f"asked for {wanted.concurrency}"
        ]
    return []


def sizes(layout: Layout, memory: list[RankMemory | None]) -> list[str]:
    """What each kind of worker has room for."""
    lines = {}
    for place, one in zip(layout, memory, strict=True):
        if one is None:
            lines[f"{place.role}: sizes of the model are not known, so nothing is said about what fits"] = None
        elif one.concurrency:
            lines[
                f"{place.role}, a GPU: {in_words(one)}: {one.pool_tokens} tokens, {one.concurrency} x "
                f"{one.context} at once"
            ] = None
    return list(lines)


def bounds_of(layout: Layout, model: ModelReport, machine: MachineReport, chosen: Selection) -> list[Bound]:
    """The bounds of a layout: of its prefill and its decode, and of what crosses links."""
    links = Links(machine.links)
    first, last = layout[0], layout[-1]
    gb_s, way = link(first.gpus, links, machine.gpus, chosen)
    found = bounds.prefill(model, chosen.model, len(first.gpus))
    found += bounds.all_reduce(model, gb_s, way, len(first.gpus))
    if first.role == "prefill" and first.gpus != last.gpus:
        pair_gb_s, pair_way = link((first.gpus[0], last.gpus[0]), links, machine.gpus, chosen)
        found += bounds.transfer(model, pair_gb_s, pair_way, len(first.gpus))
    return found + bounds.decode(model, chosen.model, len(last.gpus))


def link(gpus: tuple[int, ...], links: Links, all_gpus: list[Gpu], chosen: Selection) -> tuple[float | None, str]:
    """GB/s in one direction of the slowest GPU's own link among `gpus`, and what link that is."""
    return speed_of(gpus, links, all_gpus, chosen.model)


def link_of(gpus: tuple[int, ...], machine: MachineReport) -> tuple[float | None, str]:
    """The same for GPUs of a machine's report."""
    first = next((gpu.name for gpu in machine.gpus if gpu.index == gpus[0]), None)
    return speed_of(gpus, Links(machine.links), machine.gpus, gpu_model(first))


def speed_of(
    gpus: tuple[int, ...], links: Links, all_gpus: list[Gpu], sheet: GpuModel | None
) -> tuple[float | None, str]:
    """GB/s of the slowest link among `gpus`, by the machine's links first and the data sheet second."""
    if len(gpus) > 1 and links.all_nvlink(gpus):
        return (sheet.nvlink_gb_s if sheet else None), "NVLink, data sheet"
    slowest: tuple[float, str] | None = None
    for gpu in all_gpus:
        if gpu.index in gpus:
            lane = LANE_GB_S.get(gpu.pcie.max_gen or gpu.pcie.gen or 0)
            width = gpu.pcie.width or gpu.pcie.max_width
            if lane is None or width is None:
                slowest = None
                break
            speed = round(lane * width, 1), f"PCIe {gpu.pcie.max_gen or gpu.pcie.gen} x{width}"
            slowest = min(slowest or speed, speed)
    if slowest is None and sheet and sheet.pcie_gb_s:
        return sheet.pcie_gb_s, "PCIe, data sheet"
    return slowest or (None, "link not known")
