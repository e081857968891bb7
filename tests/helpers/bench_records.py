"""SIMULATED BenchRecords for tests of statistics, tables and reports: a latency profile in place of an engine.

Every record made here has `simulated` set: nothing in it was measured.
"""

import random

from appliance.bench.figures import figures_of
from appliance.bench.serve.limits import per_gpu, roles
from appliance.documents import (
    Asked,
    BenchedTopology,
    BenchRecord,
    Cell,
    Distribution,
    EngineReport,
    KvTransfers,
    LimitShare,
    Plan,
    PlannedEngine,
    PlannedModel,
    Repetition,
    Router,
    Slo,
    Stamp,
    Worker,
    Workload,
)
from tests.helpers.gpu_machines import rtx_machine, v4_flash

CONCURRENCIES = (1, 4, 16, 64)
INPUTS = (512, 8192, 65536)
SLO = Slo(ttft_ms=5000.0, tpot_ms=60.0)
# milliseconds of prefill per 1000 tokens, of a decode step alone, and what one more request adds to a step
PROFILE = {"pd": (95.0, 11.0, 0.16), "replicas": (95.0, 11.5, 0.34), "single": (60.0, 9.0, 0.21)}


def plan(topology: str) -> Plan:
    """A plan of that topology on eight GPUs."""
    workers = {
        "pd": [("prefill", "prefill", [0, 1, 2, 3]), ("decode", "decode", [4, 5, 6, 7])],
        "replicas": [("replica-0", "aggregated", [0, 1, 2, 3]), ("replica-1", "aggregated", [4, 5, 6, 7])],
        "single": [("single", "aggregated", list(range(8)))],
    }[topology]
    return Plan(
        topology=topology,
        model=PlannedModel(path="/srv/models/simulated", served_name="simulated"),
        engine=PlannedEngine(version="0.5.23", device="cuda"),
        workers=[
            Worker(name=name, role=role, gpus=gpus, tp_size=len(gpus), port=31000 + index)
            for index, (name, role, gpus) in enumerate(workers)
        ],
        router=None if topology == "single" else Router(port=30000, metrics_port=30001),
    )


def workloads() -> list[Workload]:
    """The matrix and the mixes."""
    found = [
        Workload(name="plain", input_tokens=n, output_tokens=256, concurrency=c, requests=4 * c, slo=SLO)
        for n in INPUTS
        for c in CONCURRENCIES
    ]
    mixed = {"input_tokens": 512, "output_tokens": 256, "concurrency": 4, "requests": 16, "slo": SLO}
    return [
        *found,
        Workload(name="tail isolation", long_input_tokens=65536, **mixed),
        Workload(name="multi-turn", turns=4, **mixed),
        Workload(name="structured output", **mixed),
    ]


def repetition(topology: str, workload: Workload, source: random.Random, slower: float = 1.0) -> Repetition:
    """One repetition by the profile, with noise of 2 %."""
    prefill, step, more = PROFILE[topology]
    load = workload.concurrency or 1
    behind = (workload.long_input_tokens or 0) * (0.02 if topology == "pd" else 1.0)

    def noisy(value: float) -> float:
        return round(value * slower * source.gauss(1.0, 0.02), 3)

    ttft = noisy(30 + prefill * (workload.input_tokens * load + behind) / 1000)
    tpot = noisy(step + more * load)
    seconds = (ttft + tpot * workload.output_tokens) / 1000 * workload.requests / load

    def spread(value: float) -> Distribution:
        return Distribution(mean=value, p50=value, p90=round(value * 1.2, 3), p99=round(value * 1.5, 3))

    output = workload.requests * workload.output_tokens
    meets = ttft <= SLO.ttft_ms and tpot <= SLO.tpot_ms
    return Repetition(
        started="2026-01-01T00:00:00+00:00",
        requests=workload.requests,
        completed=workload.requests,
        input_tokens=workload.requests * workload.input_tokens,
        cached_tokens=0,
        output_tokens=output,
        duration_s=round(seconds, 3),
        input_tokens_per_s=round(workload.requests * workload.input_tokens / seconds, 2),
        output_tokens_per_s=round(output / seconds, 2),
        ttft_ms=spread(ttft),
        tpot_ms=spread(tpot),
        itl_ms=spread(tpot),
        e2e_ms=spread(ttft + tpot * workload.output_tokens),
        goodput_per_s=round(workload.requests / seconds, 4) if meets else 0.0,
        kv_transfers=KvTransfers(transfers=workload.requests, bytes=10**9, latency_ms=noisy(40), gb_s=noisy(20))
        if topology == "pd"
        else None,
        energy_j=noisy(2000.0 * seconds),
    )


def simulated_record(
    seed: int = 1,
    slower: float = 1.0,
    repetitions: int = 3,
    topologies: tuple[str, ...] = ("pd", "replicas", "single"),
    **changes,
) -> BenchRecord:
    """A whole run by the profile. slower: all latencies times that."""
    source = random.Random(seed)
    plans = {topology: plan(topology) for topology in topologies}
    cells = []
    for topology in topologies:
        for workload in workloads():
            found = [repetition(topology, workload, source, slower) for _ in range(repetitions)]
            figures = figures_of(found)
            share = round(min(1.0, 0.02 * (workload.concurrency or 1) ** 0.7), 3)
            limit = LimitShare(
                of="decode", measured=figures["output tok/s"].median, limit=figures["output tok/s"].median / share,
                unit="tok/s", share=share, binds="memory bandwidth", formula="simulated",
            )  # fmt: skip
            cells.append(
                Cell(
                    topology=topology,
                    workload=workload,
                    repetitions=found,
                    figures=figures,
                    output_tokens_per_s_per_gpu=per_gpu(plans[topology], figures),
                    roles=roles(plans[topology], figures),
                    limits=[limit],
                )
            )
    fields = {
        "date": "2026-01-01T00:00:00+00:00",
        "command": "simulated",
        "appliance_version": "0.1.0",
        "simulated": True,
        "load_tool": "latency profile",
        "asked": Asked(topologies=list(topologies), workloads=workloads(), repetitions=repetitions, rounds=repetitions),
        "topologies": {
            name: BenchedTopology(plan=one, plan_identity=one.identity(), starts=repetitions) for name, one in plans.items()
        },
        "cells": cells,
        "complete": True,
        "order": list(topologies),
        "stamp": Stamp(
            closure="0" * 64, closure_basis="simulated", versions={"sglang": "0.5.23"}, driver="580.0",
            power_limits_w=[600.0] * 8, peer_to_peer={"0-1": True},
        ),
        "machine": rtx_machine(),
        "model": v4_flash(),
        "engine": EngineReport(version="0.5.23", python="3.12.3", packages={}),
        "remarks": ["simulated"],
    }  # fmt: skip
    return BenchRecord(**fields | changes)
