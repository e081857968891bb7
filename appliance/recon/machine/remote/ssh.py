"""One ssh round trip: the user's own configuration, no question asked, nothing left behind."""

import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable

from appliance.documents import MachineReport
from appliance.errors import InputError, ProbeIncomplete
from appliance.recon import children
from appliance.recon.machine.manifest import COMMANDS
from appliance.recon.machine.remote import frame
from appliance.recon.machine.remote.script import STAGE_LIMIT_S, script
from appliance.recon.machine.report import report_of

LIMIT_S = 90.0
CONNECT_LIMIT_S = 15
MOST_BYTES = 128 * 2**20
HOST = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,254}|\[?[0-9A-Fa-f:.%]{2,64}\]?)"
)
LISTED = {
    "files": ["pci_devices", "iommu", "nics", "gpus"],
    "models": ["models"],
    "processes": ["engines"],
}
"""Facts that a stage out of time leaves null."""
FAULTS = [
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key changed; expected the key in known_hosts (see ssh {host})",
    ),
    ("Host key verification failed", "its host key is not known; expected it in known_hosts (connect by hand once)"),
    ("Permission denied", "the login was refused; expected a key that works without a question, as for `ssh {host}`"),
    ("Too many authentication failures", "the login was refused; expected one key that works, as for `ssh {host}`"),
    ("Could not resolve hostname", "no such host; expected a name that ssh can resolve"),
    ("Connection refused", "the connection was refused; expected an ssh server there"),
    ("No route to host", "there is no route to it; expected an ssh server there"),
    ("timed out", "it did not answer; expected an ssh server there"),
    ("Bad configuration option", "the ssh configuration is not valid"),
]


def report_from_host(
    host: str, model_roots: list[str], limit_s: float = LIMIT_S, say: Callable[[str], None] = lambda text: None
) -> MachineReport:
    """The report of the machine behind `host` ("user@host", or a name of the ssh configuration).

    Raises InputError for a name that is none, ProbeIncomplete where nothing came back, each in one line. Where the
    answer is cut off, the facts that came stand and the rest is null with the reason.
    """
    if not HOST.fullmatch(host):
        raise InputError(f"{host!r} is no host; expected user@host or a name of the ssh configuration")
    if any("\n" in root or "\0" in root for root in model_roots):
        raise InputError("a folder of models has a line break in its name; expected a path")
    marker = secrets.token_hex(16)
    say(f"asking {host}")
    data, errors, code = round_trip(host, script(marker, model_roots), marker, limit_s)
    source = frame.parse(data, marker, {name: words[0] for name, words in COMMANDS.items()})
    if not source.begun or not (source.files or source.outputs):
        raise ProbeIncomplete(f"{host}: {reason(host, errors, code, limit_s)}")
    if not source.whole:
        source.problem = f"{host} stopped in the middle: {reason(host, errors, code, limit_s)}"
        say(source.problem)
    report = report_of(source, model_roots)
    return with_problem(report, source)


def with_problem(report: MachineReport, source: frame.FrameSource) -> MachineReport:
    """`report` with why facts are absent where the answer was cut off, or where a stage ran into its limit."""
    late = [stage for stage, code in source.stages.items() if code in frame.TIMED_OUT]
    notes = [f"out of time there: {', '.join(late)}"] if late else []
    sources = dict(report.sources)
    for stage in late:
        for name in LISTED.get(stage, []):
            if sources.get(name, "absent").startswith("absent"):
                sources[name] = f"absent: {stage} took more than {STAGE_LIMIT_S} s there"
    if not source.whole:
        notes.append(source.problem)
        sources = {
            name: f"absent: {source.problem}" if where.startswith("absent") else where
            for name, where in sources.items()
        }
    return report.model_copy(update={"notes": report.notes + notes, "sources": sources})


def round_trip(host: str, text: str, marker: str, limit_s: float) -> tuple[bytes, str, int | None]:
    """Run a script on `host` by ssh; its output, ssh's own messages, its exit code (None: ended for being late).

    BatchMode: no question, since nobody is there to answer. Otherwise the user's configuration decides: keys, jump
    hosts, multiplexing.
    """
    words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_LIMIT_S}", "--", host, "exec sh -s"]
    try:
        process = children.start(words, stdin=subprocess.PIPE)
    except OSError as error:
        raise ProbeIncomplete(f"ssh cannot be run ({error.strerror}); expected it on PATH") from None
    out, err = bytearray(), bytearray()
    ended = threading.Event()
    threads = [
        threading.Thread(target=feed, args=(process, text.encode()), daemon=True),
        threading.Thread(target=drain, args=(process.stderr, err, None, None), daemon=True),
        threading.Thread(target=drain, args=(process.stdout, out, f"\n{marker} end ".encode(), ended), daemon=True),
    ]
    deadline = time.monotonic() + limit_s
    try:
        for thread in threads:
            thread.start()
        ended.wait(max(0.0, deadline - time.monotonic()))
        # a multiplexing master may hold stderr open for hours: wait for the process, not for the pipe
        code = wait(process, min(5.0, max(0.1, deadline - time.monotonic())))
        threads[1].join(0.3)
    finally:
        children.end(process)
    return bytes(out), bytes(err).decode(errors="replace"), code


def feed(process: subprocess.Popen, data: bytes) -> None:
    """Give ssh the script; it may end before it has read all of it."""
    try:
        process.stdin.write(data)
        process.stdin.close()
    except (OSError, ValueError):
        return


def drain(pipe, into: bytearray, mark: bytes | None, ended: threading.Event | None) -> None:
    """Read a pipe to its end, or to `mark`; then set `ended`."""
    try:
        while len(into) < MOST_BYTES and (chunk := pipe.read1(65536)):
            into += chunk
            if mark and mark in into[-len(chunk) - len(mark) :]:
                break
    except (OSError, ValueError):
        pass
    if ended:
        ended.set()


def wait(process: subprocess.Popen, seconds: float) -> int | None:
    """The exit code of a process that ends within `seconds`; None if it does not."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def reason(host: str, errors: str, code: int | None, limit_s: float) -> str:
    """Why ssh brought nothing, or not all, in words."""
    for sign, words in FAULTS:
        if sign in errors:
            return words.format(host=host)
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if code is None:
        return f"no further answer within {limit_s:g} s"
    if code == 255 and lines:
        return f"ssh: {lines[-1][:200]}"
    if code in (126, 127) or not lines:
        return f"its shell ended with code {code}; expected a POSIX shell"
    return f"its shell ended with code {code}: {lines[-1][:200]}"
