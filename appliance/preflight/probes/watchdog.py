"""Run one probe in a process of its own; what hangs is killed with all that it started, and said to have hung."""

import json
import subprocess
import sys
import threading
import time

from appliance.documents.probes import Measure, ProbeResult
from appliance.preflight.probes.probe import LiveProbe, Subject
from appliance.recon.children import end, start

LAST_WORDS = 300


def run(probe: LiveProbe, subject: Subject) -> ProbeResult:
    """The result of a probe, at its limit at the latest. Never raises."""
    limit = probe.limit_s * subject.patience
    has_gpu = bool(subject.machine.gpus) or subject.simulated is not None
    device = subject.device() if probe.on_gpu and has_gpu else "cpu"

    def result(status: str, seconds: float = 0.0, **fields) -> ProbeResult:
        return ProbeResult(
            probe=probe.name, status=status, device=device, seconds=round(seconds, 2), limit_s=limit, **fields
        )

    reason = probe.why_not(subject)
    if reason:
        return result("does not apply", reason=reason)
    begun = time.monotonic()
    try:
        lines, ending, errors = lines_of(probe, subject, limit)
    except OSError as error:
        return result("failed", time.monotonic() - begun, reason=f"cannot be started: {error}")
    seconds = time.monotonic() - begun
    told = {
        "measures": [Measure(**line["measure"]) for line in lines if "measure" in line],
        "facts": dict(line["fact"] for line in lines if "fact" in line),
    }
    doing = next((line["doing"] for line in reversed(lines) if "doing" in line), "starting")
    problems = [line["problem"] for line in lines if "problem" in line]
    if ending is None:
        return result("hung", seconds, reason=f"killed after {limit:g} s while {doing}", **told)
    if problems:
        return result("failed", seconds, reason="; ".join(problems), **told)
    if not any(line.get("done") for line in lines):
        said = " ".join(errors.split())[-LAST_WORDS:]
        return result("failed", seconds, reason=f"ended with {ending} while {doing}: {said or 'no word'}", **told)
    return result("measured", seconds, **told)


def lines_of(probe: LiveProbe, subject: Subject, limit: float) -> tuple[list[dict], int | None, str]:
    """(what the child told, its exit code or None where it was killed, its standard error). Raises OSError."""
    specification = probe.specify(subject)
    process = start(
        [sys.executable, "-W", "ignore", "-m", probe.module],
        stdin=subprocess.PIPE,
        env=probe.environment(subject),
    )
    lines: list[dict] = []
    errors: list[bytes] = []
    readers = [
        threading.Thread(target=read_lines, args=(process.stdout, lines), daemon=True),
        threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        process.stdin.write(json.dumps(specification).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it ended at once: its exit code says so
    try:
        ending = process.wait(limit)
        for reader in readers:
            reader.join(1.0)
    except subprocess.TimeoutExpired:
        ending = None
    finally:
        end(process)
        probe.tidy(specification)
    return list(lines), ending, b"".join(errors).decode(errors="replace")


def read_lines(stream, lines: list[dict]) -> None:
    """Read lines of JSON until the stream ends or is closed; half a line of a killed process is passed over."""
    try:
        for line in stream:
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
    except (OSError, ValueError):
        return
