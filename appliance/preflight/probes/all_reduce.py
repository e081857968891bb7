"""All-reduce among the ranks of each worker, small and large, by torch.distributed as the engine does it.

Ranks are processes of their own in the worker's environment. All workers' groups run at once, as they will.
"""

import json
import os
import socket
import subprocess
import sys
import time

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe, Subject, needs_gpu

MODULE = "appliance.preflight.probes.all_reduce"
SMALL, SMALL_TIMES = 16 * 1024, 200
"""A decode step's all-reduce: hidden size 4096 in two bytes, two tokens."""
LARGE, LARGE_TIMES = 64 * 2**20, 10
"""A prefill chunk's: 8192 tokens of the same."""


def why_not(subject: Subject) -> str | None:
    """A group needs two GPUs, and torch with NCCL."""
    from appliance.recon.engine import installed

    if subject.simulated is not None:
        return "a simulated device has no collectives"
    if needs_gpu(subject):
        return needs_gpu(subject)
    if not any(len(worker.gpus) > 1 for worker in subject.workers()):
        return "no worker of a plan has several GPUs"
    return None if installed("torch") else "torch is not installed in this environment"


def specify(subject: Subject) -> dict:
    """A group a worker that has several GPUs."""
    groups = [
        {
            "name": worker.name,
            "ranks": len(worker.gpus),
            "port": worker.nccl_port,
            "environment": subject.environment(worker),
        }
        for worker in subject.workers()
        if len(worker.gpus) > 1
    ]
    return {"groups": groups, "backend": "nccl"}


PROBE = LiveProbe(
    name="all-reduce",
    title="all-reduce among planned ranks",
    module=MODULE,
    limit_s=20,
    why_not=why_not,
    specify=specify,
    on_gpu=True,
)


def main(spec: dict, teller: Teller) -> None:
    """Start all ranks, and tell what rank 0 of each group measured."""
    teller.doing("starting " + ", ".join(f"{group['ranks']} ranks of {group['name']}" for group in spec["groups"]))
    members = [(group, rank) for group in with_ports(spec["groups"]) for rank in range(group["ranks"])]
    ranks = [(group, rank, start(spec, group, rank)) for group, rank in members]
    for group, rank, process in ranks:
        teller.doing(f"all-reduce of {group['name']}, rank {rank}")
        out, err = process.communicate()
        if process.returncode != 0:
            said = " ".join(err.split())[-300:]
            teller.problem(f"{group['name']}, rank {rank}: ended with {process.returncode}: {said}")
        for line in out.splitlines() if rank == 0 else []:
            told = json.loads(line)
            if told["wrong"]:
                teller.problem(f"{group['name']}: a sum of {told['bytes']} bytes is wrong")
            label = f"{group['name']} all-reduce of {group['ranks']}"
            if told["bytes"] == SMALL:
                teller.measure(f"{label}, {SMALL // 1024} KiB", told["seconds"] * 1e6, "us", better="lower")
            else:
                rate = 2 * (group["ranks"] - 1) / group["ranks"] * told["bytes"] / told["seconds"] / 1e9
                teller.measure(f"{label}, {LARGE >> 20} MiB, bus bandwidth", rate, "GB/s")


def with_ports(groups: list[dict]) -> list[dict]:
    """The groups, those without a port with one that is free now."""
    found = []
    for group in groups:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            found.append(group | {"port": group["port"] or free.getsockname()[1]})
    return found


def start(spec: dict, group: dict, rank: int) -> subprocess.Popen:
    """One rank."""
    told = {"backend": spec["backend"], "rank": rank, "ranks": group["ranks"], "port": group["port"]}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", MODULE, json.dumps(told)],
        env=group["environment"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def be_rank(told: dict) -> None:
    """Join the group, reduce, check the sums, and print what was measured."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import torch
    from torch import distributed

    cuda = told["backend"] == "nccl"
    where = torch.device("cuda", told["rank"]) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(where)
    address = f"tcp://127.0.0.1:{told['port']}"
    distributed.init_process_group(told["backend"], init_method=address, rank=told["rank"], world_size=told["ranks"])
    for size, times in ((SMALL, SMALL_TIMES), (LARGE, LARGE_TIMES)):
        tensor = torch.full((size // 2,), told["rank"] + 1, dtype=torch.bfloat16, device=where)
        distributed.all_reduce(tensor)
        wrong = bool((tensor != sum(range(1, told["ranks"] + 1))).any().item())
        tensor.zero_()
        distributed.barrier()
        begun = time.perf_counter()
        for _ in range(times):
            distributed.all_reduce(tensor)
        if cuda:
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - begun) / times
        out.write(json.dumps({"bytes": size, "seconds": seconds, "wrong": wrong}) + "\n")
    distributed.barrier()
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    be_rank(json.loads(sys.argv[1])) if sys.argv[1:] else run(main)
