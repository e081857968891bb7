"""Which GPUs of a machine a plan may use: all of one kind, whole, and known."""

from collections import defaultdict
from dataclasses import dataclass

from appliance.documents import Gpu, MachineReport
from appliance.errors import InputError
from appliance.hardware.gpu_model import GpuModel, compute_capability, gpu_model

MIB = 1024**2


@dataclass(frozen=True)
class Selection:
    """The GPUs to plan with, in order of index, what is published about them, and what was left out and why."""

    gpus: list[Gpu]
    model: GpuModel | None
    memory_bytes: int
    """Of each GPU."""
    name: str
    compute_capability: str | None
    remarks: list[str]


def select(machine: MachineReport, only: list[int] | None = None, called: str | None = None) -> Selection:
    """The GPUs of `machine` to plan with. Raises InputError where there are none, or where their memory is not known.

    only: indices to choose among. called: the GPUs' name, for a report that does not have it (nvidia-smi topo -m).
    """
    known = {gpu.index for gpu in machine.gpus}
    unknown = sorted(set(only or ()) - known)
    if unknown:
        raise InputError(f"no GPU {unknown[0]}; expected some of {', '.join(map(str, sorted(known)))}")
    remarks = []
    asked = [gpu for gpu in machine.gpus if only is None or gpu.index in only]
    if called is not None:
        asked = [gpu.model_copy(update={"name": gpu.name or called}) for gpu in asked]
    whole = [gpu for gpu in asked if not gpu.mig_enabled and not gpu.mig_devices]
    for gpu in asked:
        if gpu not in whole:
            remarks.append(f"GPU {gpu.index} is left out: MIG divides it; nvidia-smi -i {gpu.index} -mig 0 ends that")
    if not whole:
        raise InputError(f"no whole GPU to plan with: {'; '.join(remarks) or 'none was asked for'}")
    kinds: dict[tuple, list[Gpu]] = defaultdict(list)
    for gpu in whole:
        kinds[(gpu.name, compute_capability(gpu), memory_of(gpu))].append(gpu)
    best = max(kinds, key=lambda kind: ((kind[2] or 0) * len(kinds[kind]), len(kinds[kind])))
    for kind, gpus in kinds.items():
        if kind != best:
            indices = ", ".join(str(gpu.index) for gpu in gpus)
            remarks.append(
                f"GPU {indices} ({kind[0] or 'unnamed'}) left out: all ranks of a worker wait for the slowest, and "
                f"{len(kinds[best])} x {best[0] or 'unnamed'} have more memory together"
            )
    name, capability, memory = best
    if memory is None:
        raise InputError(
            f"the memory of GPU {kinds[best][0].index} is not known"
            + (f" (no data sheet of {name!r} at hand)" if name else " and its model neither")
            + "; expected a report with memory, or --gpu NAME as nvidia-smi -L writes it"
        )
    if kinds[best][0].memory_mib is None:
        remarks.append(f"memory of a GPU: {memory / 1024**3:.1f} GiB by its data sheet; the report does not say")
    if machine.gpus_without_driver:
        missing = ", ".join(machine.gpus_without_driver)
        remarks.append(f"on the bus, but not shown by the driver, so not used: {missing}")
    return Selection(kinds[best], gpu_model(name), memory, name or "GPU", capability, remarks)


def memory_of(gpu: Gpu) -> int | None:
    """Bytes of memory by the report, else by the data sheet of its model."""
    if gpu.memory_mib is not None:
        return gpu.memory_mib * MIB
    sheet = gpu_model(gpu.name)
    return int(sheet.memory_gib * 1024**3) if sheet and sheet.memory_gib else None
