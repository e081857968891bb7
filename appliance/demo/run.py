"""The demo: model, recon, plan, a reference, the pair, its checks, its measurement, the report."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import appliance
from appliance.bench.figures import figures_of
from appliance.bench.serve.repetition import measure
from appliance.demo.model import ensure_model
from appliance.demo.report import report
from appliance.documents import Cell, Check, GoldenAnswer, Plan, Recon, RunRecord, RunState, Workload, write_whole
from appliance.engines.sglang.load import TOOL
from appliance.plan.gpu import Wishes
from appliance.plan.make import make_plan
from appliance.plan.ports import PortRange
from appliance.preflight.ports import require_free
from appliance.recon.engine import engine_report
from appliance.recon.machine import machine_report
from appliance.recon.model import model_report
from appliance.supervisor.background import start_in_background, stop
from appliance.supervisor.state import StateDirectory
from appliance.verify.disaggregation import check_disaggregation, worker_metrics
from appliance.verify.golden import ask_all, differences
from appliance.verify.identity import check_identity
from appliance.verify.prompts import PROMPTS

SERVED_NAME = "demo"
STARTING_REFERENCE = "reference: starting one aggregated server"
CONCURRENCIES = [1, 2, 4]
REQUESTS_EACH, INPUT_TOKENS, OUTPUT_TOKENS = 6, 128, 32
REMARKS = {
    "cpu": [
        "Measured on a CPU with a model of random weights: the figures show that the path works, not how fast it is.",
        "On the CPU, sgl_kernel and torchvision are stand-ins, and KV pages are registered with NIXL as DRAM.",
    ],
    "cuda": [
        "Measured with a toy of a few million random weights: the figures show that the path works, not how fast it is."
    ],
}


@dataclass(frozen=True)
class Listener:
    """What the demo tells while it runs."""

    on_plan: Callable[[Plan], None]
    on_step: Callable[..., None]
    """Called with what is done now, and optionally a detail such as a count."""
    on_run: Callable[[RunState], None]


def run_demo(
    topology: str, state_dir: Path, cache_dir: Path, keep: bool, ports: PortRange, listener: Listener
) -> RunRecord:
    """Run the demo and return its record; record.json and report.md are in `state_dir`.

    Everything that was started is stopped, unless `keep` is set and all went well. Raises ApplianceError.
    """
    listener.on_step("making the model and looking at the machine")
    with ThreadPoolExecutor() as pool:
        machine = pool.submit(machine_report)
        engine = pool.submit(engine_report)
        model = pool.submit(lambda: model_report(ensure_model(cache_dir)))
        found = Recon(model=model.result(), machine=machine.result(), engine=engine.result())
    plan = make_plan(found, Wishes(topology=topology, served_name=SERVED_NAME, ports=ports))
    listener.on_plan(plan)
    directory = StateDirectory(state_dir)
    directory.require_free()
    require_free(plan)
    directory.prepare()
    plan.write(state_dir / "plan.json")

    reference_plan = make_plan(found, Wishes(topology="single", served_name=SERVED_NAME, ports=ports))
    expected = reference_answers(reference_plan, state_dir / "reference", listener)
    state = start_in_background(plan, state_dir, listener.on_run)  # stops what it started if that fails
    kept = False
    try:
        checks = check(plan, expected, listener.on_step)
        cells = measure_all(plan, found.model.vocab_size, listener.on_step)
        checks.append(check_load(cells))
        record = RunRecord(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            command=" ".join(["appliance", *sys.argv[1:]]),
            appliance_version=appliance.__version__,
            plan_identity=plan.identity(),
            model=found.model,
            machine=found.machine,
            engine=found.engine,
            plan=plan,
            start_seconds={process.name: process.ready_after_s for process in state.processes},
            checks=checks,
            bench_tool=TOOL,
            cells=cells,
            remarks=REMARKS[plan.engine.device],
        )
        record.write(state_dir / "record.json")
        write_whole(state_dir / "report.md", report(record))
        kept = keep
        return record
    finally:
        if not kept:
            stop(state_dir, listener.on_run)


def reference_answers(plan: Plan, state_dir: Path, listener: Listener) -> list[GoldenAnswer]:
    """The golden answers of one aggregated server, which is started for that and killed after."""
    listener.on_step(STARTING_REFERENCE)
    plan = plan.model_copy(update={"stop_timeout_s": 0.0})
    start_in_background(plan, state_dir, lambda state: listener.on_step(STARTING_REFERENCE))
    try:
        return ask_all(
            plan.endpoint(),
            plan.model.served_name,
            on_answer=lambda done: listener.on_step("reference: golden answers", f", {done} of {len(PROMPTS)}"),
        )
    finally:
        stop(state_dir, lambda state: None)


def measure_all(plan: Plan, vocabulary: int | None, on_step: Callable[..., None]) -> list[Cell]:
    """One cell a concurrency, each measured once."""
    cells = []
    for concurrency in CONCURRENCIES:
        on_step(f"measuring at concurrency {concurrency}")
        workload = Workload(
            name="plain",
            input_tokens=INPUT_TOKENS,
            output_tokens=OUTPUT_TOKENS,
            concurrency=concurrency,
            requests=concurrency * REQUESTS_EACH,
        )
        found = [measure(plan, workload, concurrency, vocabulary)]
        cells.append(Cell(topology=plan.topology, workload=workload, repetitions=found, figures=figures_of(found)))
    return cells


def check_load(cells: list[Cell]) -> Check:
    """Whether every request of the measurement was answered."""
    completed, requests = sum(cell.completed for cell in cells), sum(cell.requests for cell in cells)
    return Check(name="load", passed=completed == requests, evidence=f"{completed} of {requests} requests answered")


def check(plan: Plan, expected: list[GoldenAnswer], on_step: Callable[..., None]) -> list[Check]:
    """Identity of every worker, golden answers one by one and all at once, and the pair's counters."""
    on_step("checking: identity")
    checks = check_identity(plan)
    before = worker_metrics(plan)
    for at_once, name in ((1, "golden prompts, one by one"), (len(PROMPTS), "golden prompts, all at once")):
        found = ask_all(
            plan.endpoint(),
            plan.model.served_name,
            at_once=at_once,
            on_answer=lambda done, name=name: on_step(f"checking: {name}", f", {done} of {len(PROMPTS)}"),
        )
        wrong = differences(expected, found)
        tokens = sum(answer.completion_tokens for answer in found)
        evidence = "; ".join(wrong) or f"{len(found)} answers, {tokens} tokens, equal those of one aggregated server"
        checks.append(Check(name=name, passed=not wrong, evidence=evidence))
    return checks + check_disaggregation(plan, before, worker_metrics(plan), requests=2 * len(PROMPTS))
