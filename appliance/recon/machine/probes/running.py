"""What runs: engines among the processes with their identity, services, listeners."""

import fnmatch
import json
import re
import shlex

from appliance.documents.machine import Listener, RunningEngine, Service
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.manifest import ANSWERS, DEFAULT_PORTS, PROCESS_NAMES
from appliance.recon.machine.probes.kernel_text import pairs, whole
from appliance.recon.machine.probes.software import packages_beside
from appliance.recon.machine.source import LocalSource, Source
from appliance.recon.machine.text.environment_dump import SECRET, VARIABLE

# (name, a word of the command line that only the main process of such a server has)
ENGINES = [
    ("sglang", re.compile(r"sglang[./]launch_server|sglang\.srt\.entrypoints|(^|/)sglang$")),
    ("vllm", re.compile(r"vllm[./]entrypoints|(^|/)vllm$")),
    ("smg", re.compile(r"(^|/)(smg|sglang-router)$|sglang_router\.launch_router")),
    ("tensorrt-llm", re.compile(r"(^|/)trtllm-serve$")),
    ("triton", re.compile(r"(^|/)tritonserver$")),
]
SERVICES = re.compile(
    r"nvidia|dcgm|fabric|persistence|sglang|vllm|ollama|llama|triton|ray|docker|containerd|podman|kubelet|k3s|slurm|"
    r"irqbalance|numad|tuned|infiniband|openibd|rdma|ssh"
)
SECRET_FLAG = re.compile(r"--?[\w-]*(?:key|token|secret|password|credential)[\w-]*", re.IGNORECASE)
SS_LINE = re.compile(r"LISTEN\s+\d+\s+\d+\s+(\S+):(\d{1,5})\s+\S+(?:\s+users:\(\(\"([^\"]{1,64})\",pid=(\d{1,10}))?")
LISTENING = "0A"


def engines(source: Source) -> Findings:
    """The inference servers among the processes, each with what it says about itself on loopback."""
    found = Findings()
    pids = [name for name in source.names("/proc") if name.isdigit()]
    if not pids:
        found.add("engines", None, "", "no process in /proc")
        return found
    running = []
    for pid in pids:
        comm = source.text(f"/proc/{pid}/comm") or ""
        if any(fnmatch.fnmatchcase(comm, pattern) for pattern in PROCESS_NAMES):
            words = (source.text(f"/proc/{pid}/cmdline") or "").split("\n")
            name = engine_name(words)
            if name:
                running.append(engine(source, name, int(pid), words))
    found.add("engines", running, "/proc, and each server's own answer", "")
    return found


def engine_name(words: list[str]) -> str | None:
    """The engine that a command line starts, or None."""
    head = words[:4]
    return next((name for name, pattern in ENGINES if any(pattern.search(word) for word in head)), None)


def engine(source: Source, name: str, pid: int, words: list[str]) -> RunningEngine:
    """One server: arguments, environment, packages, identity."""
    options = flags(words)
    port = whole(options.get("port")) or DEFAULT_PORTS.get(name)
    status = pairs(source.text(f"/proc/{pid}/status"))
    packages = packages_beside(source, words[0])
    identity = who_answers(source, port) if port else None
    model = options.get("model-path") or options.get("model") or (identity or {}).get("model_path")
    version = (identity or {}).get("version")
    return RunningEngine(
        name=name,
        pid=pid,
        port=port,
        command=without_secrets(words),
        version=version if isinstance(version, str) else (packages or {}).get(name),
        model=model if isinstance(model, str) else None,
        identity=identity,
        environment=environment(source.text(f"/proc/{pid}/environ")),
        cpus_allowed=status.get("Cpus_allowed_list"),
        packages=packages,
    )


def flags(words: list[str]) -> dict[str, str]:
    """The options of a command line by name, as "--port 1" or "--port=1"."""
    found: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            flag, mark, value = word[2:].partition("=")
            found.setdefault(flag, value if mark else following)
    return found


def without_secrets(words: list[str]) -> list[str]:
    """A command line with the values of keys, tokens and passwords left out."""
    kept, hide = [], False
    for word in words:
        flag, mark, _ = word.partition("=")
        secret = bool(SECRET_FLAG.fullmatch(flag))
        kept.append("***" if hide else (f"{flag}=***" if secret and mark else word))
        hide = secret and not mark
    return kept


def environment(text: str | None) -> dict[str, str] | None:
    """The variables that are about engines and GPUs, without secrets; None where another user's cannot be read."""
    if text is None:
        return None
    lines = [VARIABLE.match(line) for line in text.split("\n")]
    return {line[1]: line[2] for line in lines if line and not SECRET.search(line[1])}


def units(source: Source) -> Findings:
    """The environments that the workers' systemd units set, with all their drop-ins."""
    found = Findings()
    output = source.run("units")
    environments = None if output.text is None else unit_environments(output.text)
    found.add("unit_environments", environments, "systemctl show", output.problem or "")
    return found


def unit_environments(text: str) -> dict[str, dict[str, str]]:
    """Variables by unit in what `systemctl show --property=Id,Environment` prints, without secrets."""
    found: dict[str, dict[str, str]] = {}
    for block in text.split("\n\n"):
        shown = pairs(block, "=")
        try:
            words = shlex.split(shown.get("Environment", ""))
        except ValueError:
            continue
        if shown.get("Id"):
            found[shown["Id"]] = environment("\n".join(words)) or {}
    return found


NAMING_FILES = ("NCCL_GRAPH_FILE", "NCCL_TOPO_FILE", "NCCL_CONF_FILE")
"""Variables whose value is a file that must exist (NCCL user guide, environment variables)."""


def surroundings(source: Source) -> Findings:
    """The environment that a worker started from this login would inherit, and the files that it names."""
    found = Findings()
    variables = environment(source.text("/proc/self/environ"))
    found.add("environment", variables, "/proc/self/environ: this login's", "/proc/self/environ cannot be read")
    named = [(variables or {})[name] for name in NAMING_FILES if name in (variables or {})]
    folders = {path: source.sizes(path.rsplit("/", 1)[0] or "/") for path in named if path.startswith("/")}
    seen = {path: path.rsplit("/", 1)[1] in sizes for path, sizes in folders.items() if sizes is not None}
    looked = isinstance(source, LocalSource)
    seen |= {path: False for path, sizes in folders.items() if sizes is None and looked}
    known = variables is not None and len(seen) == len(named)
    found.add("named_files", seen if known else None, "the folders of the files", "not looked at from here")
    return found


def who_answers(source: Source, port: int) -> dict[str, str | int | float | bool | None] | None:
    """The plain values of the first JSON object that the server on `port` gives; None if it gives none."""
    for path in ANSWERS:
        try:
            data = json.loads(source.answer(port, path).text or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            listed = data.get("data")
            if isinstance(listed, list) and listed and isinstance(listed[0], dict):
                return {"model": str(listed[0].get("id"))}
            return {
                key: value
                for key, value in data.items()
                if isinstance(value, str | int | float | bool | None) and not SECRET_FLAG.fullmatch(f"--{key}")
            }
    return None


def services(source: Source) -> Findings:
    """The systemd services that have to do with GPUs, inference or containers."""
    found = Findings()
    output = source.run("services")
    listed = None
    if output.text is not None:
        rows = [line.strip().lstrip("●* ").split(None, 4) for line in output.text.splitlines()]
        listed = [
            Service(name=row[0], active=row[2], sub=row[3], description=row[4] if len(row) > 4 else None)
            for row in rows
            if len(row) >= 4 and row[0].endswith(".service") and SERVICES.search(row[0])
        ]
    found.add("services", listed, "systemctl", output.problem or "")
    return found


def listeners(source: Source) -> Findings:
    """Who listens on which TCP port: ss where it is, otherwise the kernel's table, without processes."""
    found = Findings()
    output = source.run("listeners")
    if output.text is not None:
        found.add("listeners", from_ss(output.text), "ss", "")
        return found
    tables = [source.text("/proc/net/tcp"), source.text("/proc/net/tcp6")]
    if tables == [None, None]:
        found.add("listeners", None, "", f"{output.problem}; /proc/net/tcp cannot be read")
        return found
    listed = [entry for table in tables for entry in from_kernel(table or "")]
    if isinstance(source, LocalSource) and source.whole:
        listed = with_processes(listed)
    found.add("listeners", sorted(listed, key=lambda entry: (entry.port, entry.address)), "/proc/net/tcp", "")
    return found


def from_ss(text: str) -> list[Listener]:
    """The listeners that ss prints, by port."""
    lines = [SS_LINE.match(line) for line in text.splitlines()]
    listed = [
        Listener(address=line[1].strip("[]").split("%")[0], port=int(line[2]), process=line[3], pid=whole(line[4]))
        for line in lines
        if line
    ]
    return sorted(listed, key=lambda entry: (entry.port, entry.address))


def from_kernel(table: str) -> list[Listener]:
    """The listeners of /proc/net/tcp or tcp6: hexadecimal addresses, 32-bit words in the byte order of the host."""
    listed = []
    for line in table.splitlines()[1:]:
        row = line.split()
        if len(row) > 3 and row[3] == LISTENING and ":" in row[1]:
            address, _, port = row[1].partition(":")
            if re.fullmatch(r"[0-9A-F]{8}|[0-9A-F]{32}", address) and re.fullmatch(r"[0-9A-F]{4}", port):
                listed.append(Listener(address=readable(address), port=int(port, 16)))
    return listed


def readable(address: str) -> str:
    """A kernel address in the usual form; both orders of bytes are little-endian words on the hosts that matter."""
    import ipaddress

    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def with_processes(listed: list[Listener]) -> list[Listener]:
    """The listeners with the processes that psutil sees behind their ports."""
    import psutil

    try:
        owners = {
            c.laddr.port: c.pid for c in psutil.net_connections(kind="tcp") if c.status == psutil.CONN_LISTEN and c.pid
        }
    except (psutil.Error, OSError):
        return listed
    return [
        entry.model_copy(update={"pid": owners.get(entry.port), "process": process_name(owners.get(entry.port))})
        for entry in listed
    ]


def process_name(pid: int | None) -> str | None:
    """The name of a process, or None."""
    import psutil

    try:
        return psutil.Process(pid).name() if pid else None
    except psutil.Error:
        return None
