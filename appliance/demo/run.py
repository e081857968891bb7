"""The demo: model, recon, plan, a reference, the pair, its checks, its measurement, the report."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import appliance
from appliance.bench.serve import TOOL, measure
from appliance.demo.model import ensure_model
from appliance.demo.report import report
from appliance.documents import Check, GoldenAnswer, Plan, RunRecord, RunState, write_whole
from appliance.plan.cpu import plan_on_cpu
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
CONCURRENCIES = [1, 2, 4]
REQUESTS_EACH, INPUT_TOKENS, OUTPUT_TOKENS = 6, 128, 32
REMARKS = [
    "Measured on a CPU with a model of random weights: the figures show that the path works, not how fast it is.",
    "On the CPU, sgl_kernel and torchvision are stand-ins, and KV pages are registered with NIXL as DRAM.",
]


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
        facts = model.result(), machine.result(), engine.result()
    plan = plan_on_cpu(topology, *facts, served_name=SERVED_NAME, ports=ports)
    listener.on_plan(plan)
    StateDirectory(state_dir).require_free()
    require_free(plan)
    plan.write(state_dir / "plan.json")

    reference_plan = plan_on_cpu("single", *facts, served_name=SERVED_NAME, ports=ports)
    expected = reference_answers(reference_plan, state_dir / "reference", listener)
    kept = False
    try:
        state = start_in_background(plan, state_dir, listener.on_run)
        checks = check(plan, expected, listener.on_step)
        cells = measure(
            plan,
            CONCURRENCIES,
            REQUESTS_EACH,
            INPUT_TOKENS,
            OUTPUT_TOKENS,
            on_cell=lambda concurrency: listener.on_step(f"measuring at concurrency {concurrency}"),
        )
        record = RunRecord(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            command=" ".join(["appliance", *sys.argv[1:]]),
            appliance_version=appliance.__version__,
            plan_identity=plan.identity(),
            model=facts[0],
            machine=facts[1],
            engine=facts[2],
            plan=plan,
            start_seconds={process.name: process.ready_after_s or 0.0 for process in state.processes},
            checks=checks,
            bench_tool=TOOL,
            cells=cells,
            remarks=REMARKS,
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
    listener.on_step("reference: starting one aggregated server")
    plan = plan.model_copy(update={"stop_timeout_s": 0.0})
    try:
        start_in_background(plan, state_dir, lambda state: None)
        return ask_all(
            plan.endpoint(),
            plan.model.served_name,
            on_answer=lambda done: listener.on_step("reference: golden answers", f", {done} of {len(PROMPTS)}"),
        )
    finally:
        stop(state_dir, lambda state: None)


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
