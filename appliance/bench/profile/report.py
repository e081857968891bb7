"""From what was recorded to a ProfileReport."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from appliance.bench.profile.events import read
from appliance.bench.profile.experts import expert_load
from appliance.bench.profile.trace import profiles
from appliance.documents import ExpertLoad, ProfileReport, TraceProfile
from appliance.errors import InputError

ZIP = b"PK"
"""How a file of torch.save begins."""
ON_CPU = "Taken on a CPU: operators, not kernels. They say where the engine's time goes here, and nothing about a GPU."
SLOWER = "The profiler slows the steps that it watches: read the shares, not the speed."
GUESSED = "Launches within a CUDA graph count as launched with the graph."


def report(traces: list[TraceProfile], experts: ExpertLoad | None, source: str, **known) -> ProfileReport:
    """A report of today by this command line; `known`: further fields of it."""
    remarks = [SLOWER] if traces else []
    remarks += [ON_CPU] if any(trace.counts == "operators" for trace in traces) else []
    remarks += [GUESSED] if any(trace.gaps is not None for trace in traces) else []
    return ProfileReport(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["appliance", *sys.argv[1:]]),
        source=source,
        traces=traces,
        experts=experts,
        simulated=any(trace.simulated for trace in traces),
        remarks=remarks,
        **known,
    )


def from_files(paths: list[Path], ranks: list[int]) -> ProfileReport:
    """The report of saved traces and of at most one dump of the expert recorder, or a saved report itself.

    Raises InputError where a file is neither.
    """
    dumps = [path for path in paths if starts_with(path, ZIP)]
    traces = [path for path in paths if path not in dumps]
    if len(dumps) > 1:
        raise InputError(f"--from {dumps[0]} and --from {dumps[1]} are two expert records; expected one")
    if ranks and not dumps:
        raise InputError("--ep places recorded experts; expected --from expert_distribution_recorder_*.pt beside it")
    if len(paths) == 1 and traces and next(read(paths[0]), None) == ("kind", ProfileReport.KIND):
        return ProfileReport.read(paths[0])
    found = [profile for path in traces for profile in profiles(path)]
    return report(found, expert_load(dumps[0], ranks) if dumps else None, "saved files")


def starts_with(path: Path, magic: bytes) -> bool:
    """Whether the file begins so; False where it cannot be read, of which its reader tells."""
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False
