"""Start each topology in turn, measure what is asked of it, keep every repetition as soon as it is there."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import appliance
from appliance.bench.figures import figures_of
from appliance.bench.serve.limits import limits, per_gpu, roles
from appliance.bench.serve.repetition import CACHED_SHARE, measure
from appliance.bench.serve.rounds import Turn, seed_of, turns
from appliance.bench.stamp import stamp
from appliance.documents import Asked, BenchedTopology, BenchRecord, Cell, Plan, Recon, Repetition, RunState, Workload
from appliance.engines.sglang.load import TOOL
from appliance.errors import CheckFailed, InputError
from appliance.preflight.ports import require_free
from appliance.supervisor.background import start_in_background, stop
from appliance.supervisor.state import StateDirectory
from appliance.verify.identity import check_identity

WARM_OUTPUT = 8
REMARKS = {
    "cpu": ["Measured on a CPU: the figures show that the path works, not how fast the appliance is."],
    "cuda": [],
}


@dataclass(frozen=True)
class Listener:
    """What a run tells while it goes on."""

    on_step: Callable[..., None]
    """Called with what is done now, and a detail such as the time left."""
    on_run: Callable[[RunState], None]
    on_cell: Callable[[Cell], None]


def new_record(plans: dict[str, Plan], found: Recon, asked: Asked, remarks: list[str]) -> BenchRecord:
    """A record with nothing measured yet."""
    device = next(iter(plans.values())).engine.device
    try:
        tool_version = version("sglang")
    except PackageNotFoundError:
        tool_version = None
    return BenchRecord(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=" ".join(["appliance", *sys.argv[1:]]),
        appliance_version=appliance.__version__,
        load_tool=TOOL,
        load_tool_version=tool_version,
        asked=asked,
        topologies={name: BenchedTopology(plan=plan, plan_identity=plan.identity()) for name, plan in plans.items()},
        stamp=stamp(list(plans.values()), found.machine, found.engine),
        machine=found.machine,
        model=found.model,
        engine=found.engine,
        remarks=[*REMARKS[device], *remarks],
    )


def require_same(earlier: BenchRecord, fresh: BenchRecord) -> None:
    """Raise InputError unless `earlier` asked for what `fresh` asks for, of the same plans, engine and closure."""
    pairs = {
        "what was asked for": (earlier.asked, fresh.asked),
        "plans": ({n: t.plan_identity for n, t in earlier.topologies.items()},
                  {n: t.plan_identity for n, t in fresh.topologies.items()}),
        "closure": (earlier.stamp.closure, fresh.stamp.closure),
        "driver": (earlier.stamp.driver, fresh.stamp.driver),
        "machine": (earlier.machine.hostname, fresh.machine.hostname),
    }  # fmt: skip
    unlike = [name for name, (one, other) in pairs.items() if one != other]
    if unlike:
        raise InputError(f"--resume: {', '.join(unlike)} differ from the record's; expected the run that was stopped")


def run(record: BenchRecord, output: Path, state_dir: Path, listener: Listener) -> BenchRecord:
    """Measure what `record` still lacks; `output` holds every finished repetition. Raises ApplianceError.

    Whatever ends it early, an interrupt too, the topology that runs is stopped and what was measured is kept.
    """
    left = turns(record)
    clock = Clock(left)
    for turn in left:
        plan = record.topologies[turn.topology].plan
        listener.on_step(f"starting {turn.topology}", clock.words())
        StateDirectory(state_dir).require_free()
        require_free(plan)
        try:
            state = start_in_background(plan, state_dir, listener.on_run)
            require_planned(plan)
            record = started(record, turn.topology, state)
            cold = warming(turn)
            for workload, repetition in turn.cells:
                if short := cold.pop(path(workload), None):
                    listener.on_step(f"{turn.topology}: warming up, {short.words()}", clock.words())
                    warm(plan, short, record)
                listener.on_step(
                    f"{turn.topology}: {workload.words()}", f", repetition {repetition + 1}{clock.words()}"
                )
                begun = time.monotonic()
                measured = measure(plan, workload, seed_of(record, workload, repetition), record.model.vocab_size)
                clock.done(workload, time.monotonic() - begun)
                record, cell = with_repetition(record, turn.topology, workload, measured)
                record.write(output)
                listener.on_cell(cell)
        finally:
            stop(state_dir, listener.on_run)
    record = record.model_copy(update={"complete": True})
    record.write(output)
    return record


def require_planned(plan: Plan) -> None:
    """Raise CheckFailed unless every worker says of itself what the plan says: a port may be another server's."""
    wrong = [check for check in check_identity(plan) if not check.passed]
    if wrong:
        raise CheckFailed("; ".join(f"{check.name}: {check.evidence}" for check in wrong))


def warm(plan: Plan, workload: Workload, record: BenchRecord) -> None:
    """Run a workload once with prompts of its own, and throw the figures away."""
    seed = record.asked.seed * 1_000_000 + 900_000 + workload.input_tokens
    measure(plan, workload, seed, record.model.vocab_size)


def started(record: BenchRecord, topology: str, state: RunState) -> BenchRecord:
    """The record with one more start of a topology."""
    now = record.topologies[topology]
    seconds = {process.name: process.ready_after_s for process in state.processes if process.ready_after_s is not None}
    now = now.model_copy(update={"start_seconds": seconds, "starts": now.starts + 1})
    changes = {"topologies": record.topologies | {topology: now}, "order": [*record.order, topology]}
    return record.model_copy(update=changes)


def path(workload: Workload) -> tuple:
    """What the engine compiles and sizes for: workloads that share it are warmed up by one of them."""
    return workload.input_tokens, workload.name == "structured output"


def warming(turn: Turn) -> dict[tuple, Workload]:
    """What is run and thrown away before the first workload of a path: the one of highest load, with short answers."""
    highest: dict[tuple, Workload] = {}
    for workload, _ in turn.cells:
        known = highest.get(path(workload))
        if known is None or (workload.concurrency or 0) > (known.concurrency or 0):
            highest[path(workload)] = workload
    return {
        each: workload.model_copy(
            update={
                "requests": max(workload.concurrency or 1, workload.turns or 1),
                "output_tokens": min(WARM_OUTPUT, workload.output_tokens),
                "slo": None,
            }
        )
        for each, workload in highest.items()
    }


def with_repetition(
    record: BenchRecord, topology: str, workload: Workload, measured: Repetition
) -> tuple[BenchRecord, Cell]:
    """The record with one more repetition, and the cell that it belongs to, worked out anew."""
    same = [cell for cell in record.cells if (cell.topology, cell.workload.key()) == (topology, workload.key())]
    repetitions = [*(same[0].repetitions if same else []), measured]
    cell = cell_of(record, topology, workload, repetitions)
    others = [cell for cell in record.cells if cell not in same]
    places = {one.key(): place for place, one in enumerate(record.asked.workloads)}
    cells = sorted(
        [*others, cell],
        key=lambda one: (record.asked.topologies.index(one.topology), places[one.workload.key()]),
    )
    return record.model_copy(update={"cells": cells}), cell


def cell_of(record: BenchRecord, topology: str, workload: Workload, repetitions: list[Repetition]) -> Cell:
    """A cell from its repetitions, with the limits beside it."""
    plan, figures = record.topologies[topology].plan, figures_of(repetitions)
    mixed = workload.long_input_tokens is not None
    remarks = ["the short requests alone; cached tokens are of short and long ones together"] if mixed else []
    given, cached = sum(each.input_tokens for each in repetitions), sum(each.cached_tokens for each in repetitions)
    if not mixed and cached > CACHED_SHARE * given:
        remarks.append(f"{cached / given:.0%} of the prompt tokens came from a prefix cache")
    return Cell(
        topology=topology,
        workload=workload,
        repetitions=repetitions,
        figures=figures,
        output_tokens_per_s_per_gpu=per_gpu(plan, figures),
        roles=[] if mixed else roles(plan, figures),
        limits=[] if mixed else limits(plan, workload, figures, record.model, record.machine),
        remarks=remarks,
    )


class Clock:
    """The time that is left: what each workload took so far, and by tokens for those that have not run yet."""

    def __init__(self, left: list[Turn]):
        self._left = [workload for turn in left for workload, _ in turn.cells]
        self._taken: dict[tuple, float] = {}
        self._seconds, self._tokens = 0.0, 0

    def done(self, workload: Workload, seconds: float) -> None:
        """The repetition that came next took so long."""
        self._left.pop(0)
        self._taken[workload.key()] = seconds
        self._seconds += seconds
        self._tokens += tokens(workload)

    def seconds_left(self) -> float | None:
        """Of load; starts and warm-up left out. None before anything was measured."""
        if not self._tokens:
            return None
        a_token = self._seconds / self._tokens
        return sum(self._taken.get(one.key(), tokens(one) * a_token) for one in self._left)

    def words(self) -> str:
        """What is left, in words."""
        seconds = self.seconds_left()
        about = "" if seconds is None else f", about {max(1, round(seconds / 60))} min and starts"
        return f", {len(self._left)} repetitions left{about}"


def tokens(workload: Workload) -> int:
    """That a repetition asks for, in and out."""
    return workload.requests * (workload.input_tokens + workload.output_tokens)
