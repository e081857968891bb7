"""A trace and an expert record of a running worker, under a load of our own."""

import gzip
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from appliance.bench.profile.decoding import Batch, decoding
from appliance.bench.profile.experts import expert_load
from appliance.bench.profile.trace import profiles
from appliance.documents import ExpertLoad, Plan, TraceProfile, Worker
from appliance.engines.sglang.client import SglangClient
from appliance.errors import InputError, ProbeIncomplete

RECORDER_MODE = "--expert-distribution-recorder-mode"
RECORDER_FOLDER = "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR"
DP_ATTENTION = "--enable-dp-attention"
TIMEOUT_S = 180.0
"""For a profiler to start (CUPTI takes its time), and for a trace to be written."""


@dataclass(frozen=True)
class Wishes:
    """What to run and to record."""

    requests: int
    words: int
    tokens: int
    steps: int
    passes: int
    """Decode passes in which experts are counted, at least."""
    ranks: list[int]
    experts: bool
    folder: Path | None
    """Where traces are kept; None: nowhere."""

    def words_of_load(self) -> str:
        """The load, for the report."""
        return f"{self.requests} requests of {self.words} random words each, decoding; {self.steps} steps profiled"


def decoder(plan: Plan, name: str | None) -> Worker:
    """The worker to profile: the one called `name`, or the first that decodes. Raises InputError."""
    decoders = [worker for worker in plan.workers if worker.role != "prefill"]
    if name is None:
        return decoders[0]
    found = next((worker for worker in decoders if worker.name == name), None)
    if found is None:
        raise InputError(f"--worker {name}: expected one that decodes: {', '.join(one.name for one in decoders)}")
    return found


def records_experts(worker: Worker) -> bool:
    """Whether the worker was started with the recorder that is read here."""
    joined = [f"{flag}={value}" for flag, value in zip(worker.args, worker.args[1:], strict=False)]
    return f"{RECORDER_MODE}=stat" in [*joined, *worker.args]


def take(
    plan: Plan, worker: Worker, wishes: Wishes, on_step: Callable[[str], None]
) -> tuple[list[TraceProfile], ExpertLoad | None]:
    """Profile `wishes.steps` decode steps of the running `worker`, and its experts where that is wished.

    Raises InputError where the worker has no recorder, CheckFailed where a server does not answer, ProbeIncomplete
    where no trace comes.
    """
    if wishes.experts and not records_experts(worker):
        raise InputError(
            f"worker {worker.name}: started without {RECORDER_MODE} stat; expected it in the worker's args in the plan"
        )
    client = SglangClient(plan.url(worker.port), timeout_s=TIMEOUT_S)
    client.server_info()
    with folder_for(wishes.folder) as folder:
        on_step(f"sending {wishes.requests} requests")
        with decoding(plan, wishes.requests, wishes.words, wishes.tokens, TIMEOUT_S) as batch:
            earlier = dumps(worker)
            if wishes.experts:
                client.start_expert_record()
            begun = min(batch.pieces)
            on_step(f"profiling {wishes.steps} decode steps of {worker.name}")
            name = f"appliance-{os.getpid()}-{time.time_ns()}"
            client.start_profile(folder, wishes.steps, name)
            traces = wait_for_traces(folder, name, worker, batch, wishes)
            if wishes.experts:
                on_step(f"counting experts over {wishes.passes} passes")
                batch.wait_for(begun + wishes.passes, TIMEOUT_S)
                client.dump_expert_record()
        on_step("reading what was recorded")
        found = [profile for trace in traces for profile in profiles(trace)]
        return found, load_of(worker, earlier, wishes) if wishes.experts else None


def wait_for_traces(folder: Path, name: str, worker: Worker, batch: Batch, wishes: Wishes) -> list[Path]:
    """The traces of all ranks, once they are written to their ends. Raises ProbeIncomplete."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = sorted(folder.glob(f"{name}-*.trace.json.gz"))
        if len(found) >= worker.tp_size and all(map(is_whole, found)):
            return found
        if time.monotonic() > deadline:
            short = "; the requests had ended by then: ask for more tokens" if batch.ended else ""
            raise ProbeIncomplete(
                f"worker {worker.name}: {len(found)} of {worker.tp_size} traces in {folder} within {TIMEOUT_S:.0f} s"
                f"; expected one a rank, in a folder that the worker may write to{short}"
            )
        time.sleep(0.2)


def is_whole(path: Path) -> bool:
    """Whether the gzip file is written to its end."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (EOFError, OSError, zlib.error):
        return False
    return True


def load_of(worker: Worker, earlier: set[Path], wishes: Wishes) -> ExpertLoad:
    """The load in the dump that is new in the recorder's folder. Raises ProbeIncomplete, InputError.

    Without expert parallelism every rank takes itself for the first and writes the same sums.
    """
    new = sorted(dumps(worker) - earlier)
    if not new:
        raise ProbeIncomplete(f"worker {worker.name}: its recorder wrote nothing to {recorder_folder(worker)}")
    # without DP attention every rank routes, and counts, every token
    counted_by = 1 if DP_ATTENTION in worker.args else worker.tp_size
    load = first_whole(new, wishes.ranks, counted_by)
    for path in sorted(dumps(worker) - earlier):
        with suppress(OSError):  # a worker that is another user owns its dump: then it stays where it is
            if wishes.folder and path.name == load.file:
                shutil.move(path, wishes.folder)
            else:
                path.unlink()
    return load


def first_whole(dumped: list[Path], ranks: list[int], counted_by: int) -> ExpertLoad:
    """The load in the first of equal dumps that can be read: another rank may still be writing its own."""
    *others, last = dumped
    for path in others:
        with suppress(InputError):
            return expert_load(path, ranks, counted_by)
    return expert_load(last, ranks, counted_by)


def dumps(worker: Worker) -> set[Path]:
    """The dumps in the recorder's folder."""
    return set(recorder_folder(worker).glob("expert_distribution_recorder_*.pt"))


def recorder_folder(worker: Worker) -> Path:
    """Where the worker's recorder writes; SGLang's default is /tmp."""
    return Path(worker.env.get(RECORDER_FOLDER, "/tmp"))


@contextmanager
def folder_for(wished: Path | None) -> Iterator[Path]:
    """The folder of the traces; one that is removed after the block where none is wished. Raises InputError."""
    if wished is not None:
        try:
            wished.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--keep {wished}: cannot be made ({error.strerror})") from None
        yield wished.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="appliance-profile-") as scratch:
        os.chmod(scratch, 0o777)  # the worker may be another user
        yield Path(scratch)
