"""How rules read the documents: GPUs by index, links by pair, a worker's arguments, environments, versions."""

import re
from collections.abc import Iterable, Iterator

from appliance.documents import MachineReport, Worker
from appliance.documents.machine import Gpu, PciDevice
from appliance.preflight.facts import Facts
from appliance.recon.machine.text import cpu_text

BLACKWELL_WORKSTATION = re.compile(r"RTX PRO \d{4} Blackwell|RTX 50[5-9]0")
SM_12 = 12
VERSION = re.compile(r"\d+(?:\.\d+)*")
MOST_CPUS = 65_536
BEHIND_ONE_SWITCH = ("PIX", "PXB")


def capability(gpu: Gpu) -> tuple[int, int] | None:
    """(major, minor) of a GPU: as its driver says, else by its name for those of sm_120; None where neither tells."""
    if gpu.compute_capability:
        major, _, minor = gpu.compute_capability.partition(".")
        return int(major), int(minor or 0)
    if gpu.name and BLACKWELL_WORKSTATION.search(gpu.name):
        return SM_12, 0
    return (SM_12, 1) if gpu.name and re.search(r"\bGB10\b", gpu.name) else None


def sm_120(machine: MachineReport) -> list[Gpu]:
    """The GPUs of compute capability 12.x."""
    return [gpu for gpu in machine.gpus if (capability(gpu) or (0, 0))[0] == SM_12]


def name_list(indices: Iterable[int]) -> str:
    """ "GPU 0, 1, 3"."""
    return f"GPU {', '.join(map(str, indices))}"


def link(machine: MachineReport, a: int, b: int) -> str | None:
    """How two GPUs are linked; None where the matrix does not say."""
    pair = {f"GPU{a}", f"GPU{b}"}
    return next((entry.kind for entry in machine.links if {entry.a, entry.b} == pair), None)


def gpu_links(machine: MachineReport) -> dict[tuple[int, int], str]:
    """The links among GPUs by pair, the lower index first."""
    pairs = [(re.fullmatch(r"GPU(\d+)", e.a), re.fullmatch(r"GPU(\d+)", e.b), e.kind) for e in machine.links]
    return {(int(a[1]), int(b[1])): kind for a, b, kind in pairs if a and b}


def group_links(machine: MachineReport, gpus: list[int]) -> dict[tuple[int, int], str]:
    """The links within a group of GPUs."""
    return {pair: kind for pair, kind in gpu_links(machine).items() if set(pair) <= set(gpus)}


def is_nvlink(kind: str) -> bool:
    """Whether a link is NVLink, as NV18."""
    return bool(re.fullmatch(r"NV\d+", kind))


def switch_groups(machine: MachineReport) -> dict[int, int]:
    """For each GPU the lowest index behind the same PCIe switch, its own where it is alone there."""
    lowest = {gpu.index: gpu.index for gpu in machine.gpus}
    for (a, b), kind in sorted(gpu_links(machine).items()):
        if kind in BEHIND_ONE_SWITCH:
            low, high = sorted((lowest.get(a, a), lowest.get(b, b)))
            lowest = {gpu: low if root == high else root for gpu, root in lowest.items()}
    return lowest


def bridges_above_gpus(machine: MachineReport) -> list[PciDevice]:
    """Every bridge on the way from a GPU to its root; all bridges where the report has no tree (lspci's flat list)."""
    devices = {device.address: device for device in machine.pci_devices or []}
    bridges = [device for device in devices.values() if device.kind not in ("gpu", "nic", "other")]
    if not any(device.parent for device in devices.values()):
        return bridges
    above: dict[str, PciDevice] = {}
    for device in devices.values():
        parent = device.parent if device.kind == "gpu" else None
        while parent in devices and parent not in above:
            above[parent] = devices[parent]
            parent = devices[parent].parent
    return list(above.values())


def arguments(worker: Worker) -> dict[str, str]:
    """A worker's other arguments by flag; "" for a switch. `--flag=value` counts as `--flag value`."""
    found: dict[str, str] = {}
    for word, following in zip(worker.args, [*worker.args[1:], "--"], strict=False):
        if word.startswith("--"):
            flag, mark, value = word.partition("=")
            found[flag] = value if mark else ("" if following.startswith("--") else following)
    return found


def cpus(text: str | None) -> set[int]:
    """The CPUs of a kernel list; none for a text that is no such list, or names more CPUs than any kernel knows."""
    ranges = cpu_text.normal(text or "") or []
    return {cpu for first, last in ranges if last < MOST_CPUS for cpu in range(first, last + 1)}


def number(text: str | None) -> float | None:
    """The number in `text`, or None."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def valued(worker: Worker, flags: Iterable[str]) -> float | None:
    """The number that one of some flags of a worker has, or None."""
    args = arguments(worker)
    return next((number(args[flag]) for flag in flags if flag in args), None)


def environments(facts: Facts) -> Iterator[tuple[str, dict[str, str]]]:
    """Each environment that a worker may get, with whose it is: the plan's, this login's, units', running engines'."""
    for worker in facts.plan.workers if facts.plan else []:
        yield f"worker {worker.name}", worker.env
    if facts.machine and facts.machine.environment is not None:
        yield "the environment", facts.machine.environment
    yield from ((facts.machine.unit_environments or {}) if facts.machine else {}).items()
    for engine in (facts.machine.engines or []) if facts.machine else []:
        if engine.environment is not None:
            yield f"{engine.name} (pid {engine.pid})", engine.environment


ENVIRONMENTS = "plan|machine.environment|machine.unit_environments|machine.engines"
"""The need of a rule that looks at them: one is enough to find something."""


def release(text: str | None) -> tuple[int, ...] | None:
    """The leading numbers of a version: "2.26.2" is (2, 26, 2); None where there are none."""
    found = VERSION.match(text or "")
    return tuple(map(int, found[0].split("."))) if found else None


def package(facts: Facts, *names: str) -> tuple[str, str] | None:
    """(name, version) of the first of some packages that is installed, by the engine's report or the machine's."""
    known: dict[str, str | None] = dict((facts.machine.software.packages or {}) if facts.machine else {})
    if facts.engine:
        known |= {pin.package.lower().replace("_", "-"): pin.installed for pin in facts.engine.pins or []}
        known |= facts.engine.packages
    return next(((name, version) for name in names if (version := known.get(name))), None)


PACKAGES = "engine|machine.software.packages"
"""The need of a rule that looks at versions of packages."""
