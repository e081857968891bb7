"""Copies between GPUs, read and written, one pair at a time and all pairs of the planned rank map at once."""

from itertools import permutations

from appliance.preflight.gpu.device import Buffer, Copy, Device, device
from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe, Subject, needs_gpu

LARGE, LARGE_TIMES = 64 * 2**20, 6
SMALL, SMALL_TIMES = 4096, 200
TOGETHER_TIMES = 12


def specify(subject: Subject) -> dict:
    """The GPUs, and which writes to which when KV caches are sent."""
    return {"gpus": subject.gpus(), "rank_map": subject.rank_map(), "simulated": subject.simulated}


PROBE = LiveProbe(
    name="peers",
    title="copies between GPUs",
    module=__name__,
    limit_s=15,
    why_not=needs_gpu,
    specify=specify,
    on_gpu=True,
)


def main(spec: dict, teller: Teller) -> None:
    """The matrix first, then the rank map all at once. A pair without peer access is told and not measured."""
    gpus = device(spec["simulated"])
    teller.doing("making contexts and buffers")
    buffers = {gpu: (gpus.allocate(gpu, LARGE), gpus.allocate(gpu, LARGE)) for gpu in spec["gpus"]}
    pairs = list(permutations(spec["gpus"], 2)) or [(gpu, gpu) for gpu in spec["gpus"]]
    apart = [pair for pair in pairs if not gpus.reach(*pair)]
    if apart:
        teller.fact("no peer access", ", ".join(f"{a}-{b}" for a, b in apart))
    for a, b in pairs:
        if (a, b) not in apart:
            one_pair(gpus, buffers, a, b, teller)
    rank_map = [(a, b) for a, b in spec["rank_map"] if (a, b) not in apart]
    if len(rank_map) > 1:
        all_at_once(gpus, buffers, rank_map, teller)


def one_pair(gpus: Device, buffers: dict[int, tuple[Buffer, Buffer]], a: int, b: int, teller: Teller) -> None:
    """Write from `a` to `b`, and read by `b` from `a`: the same way for the data, another for PCIe."""
    source, target = buffers[a][0], buffers[b][1]
    for kind, by in (("write", a), ("read", b)):
        name = f"GPU{a} -> GPU{b} {kind}"
        teller.doing(name)
        gpus.fill(source, 0xA5), gpus.fill(target, 0)
        (seconds,) = gpus.seconds([Copy(source, target, by, LARGE_TIMES)])
        if not gpus.holds(target, 0xA5):
            teller.problem(f"{name}: the bytes that arrived are not those that were sent")
        teller.measure(name, LARGE * LARGE_TIMES / seconds / 1e9, "GB/s")
        small = [Buffer(buffer.gpu, buffer.address, SMALL) for buffer in (source, target)]
        (seconds,) = gpus.seconds([Copy(*small, by, SMALL_TIMES)])
        teller.measure(f"{name}, 4 KiB", seconds / SMALL_TIMES * 1e6, "us", better="lower")
        if a == b:
            return


def all_at_once(gpus: Device, buffers: dict[int, tuple[Buffer, Buffer]], rank_map, teller: Teller) -> None:
    """Every rank of prefill writes to its rank of decode, at the same time."""
    teller.doing(f"writing {', '.join(f'GPU{a} -> GPU{b}' for a, b in rank_map)} at once")
    copies = [Copy(buffers[a][0], buffers[b][1], a, TOGETHER_TIMES) for a, b in rank_map]
    for (a, b), seconds in zip(rank_map, gpus.seconds(copies), strict=True):
        rate = LARGE * TOGETHER_TIMES / seconds / 1e9
        teller.measure(f"GPU{a} -> GPU{b} write, all pairs at once", rate, "GB/s")


if __name__ == "__main__":
    run(main)
