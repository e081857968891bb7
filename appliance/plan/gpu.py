"""Plans for a machine with GPUs: every topology laid out and costed, one chosen, and what it must be told."""

from dataclasses import dataclass

from appliance.documents import EngineReport, MachineReport, ModelReport, Plan, PlannedEngine, Router, Worker
from appliance.engines.settings import reasons, variables, words
from appliance.engines.sglang.cuda import settings as sglang
from appliance.engines.sglang.kernels import PACKAGE
from appliance.engines.smg import settings as smg
from appliance.errors import CheckFailed, InputError
from appliance.plan.costs import Costed, Wanted, cost
from appliance.plan.groups import Group, Links, groups_of
from appliance.plan.layouts import Place, layouts
from appliance.plan.model_place import planned_model
from appliance.plan.ports import PortRange
from appliance.plan.rank_map import split_switches
from appliance.plan.select import Selection, select

TOPOLOGIES = ("pd", "replicas", "single")
"""In the order of preference where nothing is asked for."""
START_TIMEOUT_S = 3600
"""146 GB at a slow disk's 100 MB/s, and the compilation of kernels."""
STOP_TIMEOUT_S = 60
FRACTIONS = {"prefill": 0.4, "decode": 0.65}
"""--mem-fraction-static of two workers on one GPU, started one after the other: decode sees what prefill left free."""


@dataclass(frozen=True)
class Wishes:
    """What a user may ask of a plan."""

    topology: str | None = None
    """None: the first that fits, in the order of TOPOLOGIES."""
    sizes: Wanted = Wanted()
    draft_tokens: int | None = None
    only_gpus: list[int] | None = None
    gpu_name: str | None = None
    model_path: str | None = None
    served_name: str | None = None
    ports: PortRange = PortRange()


def plan_on_gpus(machine: MachineReport, model: ModelReport, engine: EngineReport, wishes: Wishes) -> Plan:
    """A plan for `model` on the GPUs of `machine`.

    Raises InputError where the reports do not tell enough or a wish cannot be one, CheckFailed where nothing fits or
    the topology that is asked for does not.
    """
    if engine.version is None:
        raise InputError("SGLang is not installed in the reported environment; a plan pins the version it is made for")
    check(model, wishes)
    chosen = select(machine, wishes.only_gpus, wishes.gpu_name)
    links = Links(machine.links)
    groups = groups_of(chosen.gpus, links)
    costed = {name: best(name, groups, model, machine, chosen, wishes) for name in TOPOLOGIES}
    topology, why = choose(costed, wishes)
    picked = costed[topology]
    workers = [
        worker(index, place, picked, model, machine, engine, chosen, links, wishes)
        for index, place in enumerate(picked.layout)
    ]
    router = None
    if topology != "single":
        args = smg.ROUTER_ARGS + (smg.REPLICAS_ARGS if topology == "replicas" else [])
        ports = wishes.ports
        router = Router(port=ports.router, metrics_port=ports.router_metrics, args=words(args), reasons=reasons(args))
    why += [*picked.part.reasons, *chosen.remarks, *idle(picked, chosen), *grouping(groups, topology, picked)]
    return Plan(
        topology=topology,
        model=planned_model(model, wishes.model_path, wishes.served_name),
        engine=PlannedEngine(version=engine.version, device="cuda"),
        workers=workers,
        router=router,
        start_timeout_s=START_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
        shared_gpus=shares(picked),
        reasons=why,
        topologies=[costed[name].part for name in TOPOLOGIES if costed[name] is not None],
    )


def check(model: ModelReport, wishes: Wishes) -> None:
    """Raise InputError for wishes that the model cannot have."""
    most = model.context_length_scaled or model.context_length
    if wishes.sizes.context and most and wishes.sizes.context > most:
        raise InputError(f"--context {wishes.sizes.context}: the model has {most} tokens; expected at most that")
    if wishes.draft_tokens is not None and not (model.mtp and model.mtp.count):
        found = model.mtp.basis if model.mtp else "unknown"
        raise InputError(f"--mtp: no MTP layer in this checkpoint (by {found}); expected one to draft with")


def best(
    topology: str, groups: list[Group], model: ModelReport, machine: MachineReport, chosen: Selection, wishes: Wishes
) -> Costed | None:
    """The first layout that fits, else the first; None where there are too few GPUs for the topology."""
    found = [
        cost(topology, layout, model, machine, chosen, wishes.sizes)
        for layout in layouts(topology, groups, model, shared=wishes.topology == "pd")
    ]
    return next((one for one in found if one.part.fits), found[0] if found else None)


def choose(costed: dict[str, Costed | None], wishes: Wishes) -> tuple[str, list[str]]:
    """The topology and why. Raises CheckFailed where it, or every one, does not fit."""
    wanted = wishes.topology
    names = [wanted] if wanted else list(TOPOLOGIES)
    fitting = [name for name in names if costed[name] is not None and costed[name].part.fits]
    if fitting:
        first = fitting[0]
        if wanted:
            return first, [f"topology {first} was asked for"]
        passed = [f"{name}: {rejection(costed[name])}" for name in names[: names.index(first)]]
        return first, [f"topology {first}: the first of {', '.join(names)} that fits", *passed]
    refusals = [f"{name}: {rejection(costed[name])}" for name in names]
    others = [name for name in TOPOLOGIES if name not in names and costed[name] is not None and costed[name].part.fits]
    refusals += [f"{' and '.join(others)} would fit"] if others else []
    raise CheckFailed(f"no plan: {'; '.join(refusals)}")


def rejection(costed: Costed | None) -> str:
    """Why a topology is not possible here, in words."""
    return costed.part.reasons[0] if costed else "needs two GPUs (pd on one is made where it is asked for)"


def worker(
    index: int,
    place: Place,
    picked: Costed,
    model: ModelReport,
    machine: MachineReport,
    engine: EngineReport,
    chosen: Selection,
    links: Links,
    wishes: Wishes,
) -> Worker:
    """The worker that is number `index` of its plan."""
    memory = picked.memory[index]
    context = (memory.context if memory else wishes.sizes.context) or model.context_length or 0
    nvlink = len(place.gpus) > 1 and links.all_nvlink(place.gpus)
    processor = machine.processor.vendor, machine.processor.family
    fraction = FRACTIONS[place.role] if shares(picked) else None
    args = sglang.arguments(place.role, context, model, wishes.draft_tokens, fraction, across(place, machine))
    env = sglang.environment(
        place.role,
        len(place.gpus),
        chosen.compute_capability,
        model,
        links.farthest(place.gpus),
        nvlink,
        processor,
        own_kernels=engine.packages.get(PACKAGE) is not None,
    )
    node = place.nodes[0] if len(place.nodes) == 1 else None
    ports = wishes.ports
    return Worker(
        name=place.name,
        role=place.role,
        gpus=list(place.gpus),
        numa_node=node,
        tp_size=len(place.gpus),
        port=ports.worker(index),
        bootstrap_port=None if place.role == "aggregated" else ports.bootstrap(index),
        nccl_port=ports.nccl(index),
        args=words(args),
        env=variables(env),
        reasons=[*placing(place, node), *reasons(args + env)],
    )


def across(place: Place, machine: MachineReport) -> tuple[int, ...]:
    """The NUMA node of each rank's GPU, where all are known and they are several; empty otherwise."""
    nodes = {gpu.index: gpu.numa_node for gpu in machine.gpus}
    mine = tuple(nodes[index] for index in place.gpus)
    return mine if len(set(mine)) > 1 and None not in mine else ()


def shares(picked: Costed) -> bool:
    """Whether two workers of the layout are on one GPU."""
    used = [gpu for place in picked.layout for gpu in place.gpus]
    return len(set(used)) < len(used)


def placing(place: Place, node: int | None) -> list[str]:
    """Why these GPUs and this node."""
    shown = ", ".join(map(str, place.gpus))
    if node is not None:
        return [f"GPUs {shown}: NUMA node {node}, with CPUs and memory of that node"]
    known = [str(one) for one in place.nodes if one is not None]
    if known:
        return [f"GPUs {shown}: on NUMA nodes {', '.join(known)}, so the worker is not bound to one"]
    return [f"GPUs {shown}: the machine tells no NUMA node, so CPUs and memory are not bound"]


def idle(picked: Costed, chosen: Selection) -> list[str]:
    """Which GPUs are not used, and why."""
    used = {gpu for place in picked.layout for gpu in place.gpus}
    left = [str(gpu.index) for gpu in chosen.gpus if gpu.index not in used]
    size = len(picked.layout[0].gpus)
    why = f"{size} ranks a worker are the most that divide the model's heads and that every worker can have"
    return [f"GPU {', '.join(left)} idle: {why}"] if left else []


def grouping(groups: list[Group], topology: str, picked: Costed) -> list[str]:
    """How the GPUs hang together, and how ranks of prefill and decode are paired."""
    lines = []
    for group in groups:
        where = f"NUMA node {group.node}" if group.node is not None else "one side"
        switches = " | ".join(",".join(map(str, switch)) for switch in group.switches)
        lines.append(f"{where}: GPUs {switches} (a bar parts PCIe switches)")
    if topology == "pd" and not shares(picked):
        prefill, decode = picked.layout
        pairs = list(zip(prefill.gpus, decode.gpus, strict=True))
        shown = ", ".join(f"{a}->{b}" for a, b in pairs)
        split = split_switches(pairs, list(prefill.groups), list(decode.groups))
        if split:
            rest = f"{split} switches of prefill write behind more than one of decode, which no order avoids here"
        else:
            rest = "each switch of prefill writes behind one switch of decode (posted writes collapse otherwise, r6k)"
        lines.append(f"KV cache {shown}: {rest}")
    return lines
