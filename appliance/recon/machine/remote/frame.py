"""The framed text that the script prints, and the Source made of it.

A record is a line "MARKER kind name" and what follows up to the next such line. Kinds: f file, x bytes in hexadecimal,
l link, d folder with sizes, n names, k file system, c command, r its exit code, h answer of a server, v variable,
s end of a stage with its exit code.
"""

import re
from dataclasses import dataclass, field

from appliance.recon.machine.source import Output

TIMED_OUT = ("124", "137")
LISTS = {
    "files": re.compile(r"/sys/(bus|class|kernel|module)/"),
    "models": re.compile(r"(?!/proc|/sys|/etc)"),
    "processes": re.compile(r"/proc/\d"),
}
"""Paths of each stage that make lists: half a list would look like a whole one, so that none of it counts."""


@dataclass
class FrameSource:
    """A machine as one frame shows it. What was cut off is absent, and `problem` says why."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, dict[str, int | None]] = field(default_factory=dict)
    spaces: dict[str, tuple[int, int]] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    answers: dict[tuple[int, str], str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    children: dict[str, set[str]] = field(default_factory=dict)
    begun: bool = False
    whole: bool = False
    problem: str = "the script did not come to it"

    def text(self, path: str) -> str | None:
        data = self.files.get(path)
        return None if data is None else data.decode(errors="replace").strip() or None

    def data(self, path: str) -> bytes | None:
        return self.files.get(path)

    def names(self, folder: str) -> list[str]:
        return sorted(self.children.get(folder.rstrip("/"), ()))

    def sizes(self, folder: str) -> dict[str, int | None] | None:
        return self.folders.get(folder)

    def link(self, path: str) -> str | None:
        return self.links.get(path)

    def space(self, path: str) -> tuple[int, int] | None:
        return self.spaces.get(path)

    def run(self, name: str) -> Output:
        return self.outputs.get(name, Output(problem=self.problem))

    def answer(self, port: int, path: str) -> Output:
        found = self.answers.get((port, path))
        return Output(text=found) if found is not None else Output(problem=f"port {port} did not answer to {path}")

    def variable(self, name: str) -> str | None:
        return self.variables.get(name)


def parse(data: bytes, marker: str, programs: dict[str, str]) -> FrameSource:
    """The Source of a script's output, whole or cut off anywhere. `programs` names each command's program.

    Text before the frame (a banner, what a login script prints) is passed over.
    """
    source = FrameSource()
    mark = marker.encode()
    records = data.split(b"\n" + mark + b" ")
    cut = len(records) > 1 and not records[-1].startswith(b"end ")
    running: str | None = None
    for place, record in enumerate(records[1:], start=1):
        head, line_end, body = record.partition(b"\n")
        kind, _, name = head.decode(errors="replace").partition(" ")
        if cut and place == len(records) - 1 and (kind not in ("c", "begin") or not line_end):
            break  # the last record of a text that was cut off may be cut itself
        if kind == "c":
            running = name
            source.outputs[name] = Output(problem=f"{programs.get(name, name)} gave no answer in time")
            source.files[f"\0{name}"] = body
        elif kind == "r":
            take_exit(source, name, programs)
            running = None
        elif kind == "s":
            stage, _, code = name.rpartition(" ")
            source.stages[stage] = code
            running = None
        else:
            take(source, kind, name, body)
    if running:
        source.outputs[running] = Output(problem=f"{programs.get(running, running)} gave no answer in time")
    for key in [key for key in source.files if key.startswith("\0")]:
        del source.files[key]
    for stage, listed in LISTS.items():
        if source.stages.get(stage, TIMED_OUT[0]) in TIMED_OUT:
            drop(source, listed)
    known = [*source.files, *source.links, *source.folders, *source.children]
    for path in known:
        add_parents(source.children, path)
    return source


def drop(source: FrameSource, listed: re.Pattern) -> None:
    """Forget what a stage that did not come to its end said about `listed` paths."""
    for facts in (source.files, source.links, source.folders, source.children):
        for path in [path for path in facts if listed.match(path)]:
            del facts[path]


def take_exit(source: FrameSource, name: str, programs: dict[str, str]) -> None:
    """Take a command's exit code: its output counts only with code 0."""
    command, _, code = name.rpartition(" ")
    body = source.files.pop(f"\0{command}", b"")
    text = body.decode(errors="replace")
    program = programs.get(command, command)
    if code == "0":
        source.outputs[command] = Output(text=text)
    elif code == "127":
        source.outputs[command] = Output(problem=f"{program} is not installed")
    elif code in TIMED_OUT:
        source.outputs[command] = Output(problem=f"{program} gave no answer in time")
    else:
        lines = text.strip().splitlines() or [f"code {code}"]
        source.outputs[command] = Output(problem=f"{program} failed: {lines[0][:200]}")


def take(source: FrameSource, kind: str, name: str, body: bytes) -> None:
    """Take one record of data."""
    text = body.decode(errors="replace").rstrip("\n")
    if kind == "begin":
        source.begun = True
    elif kind == "end":
        source.whole = True
    elif kind == "f":
        source.files[name] = body.rstrip(b"\n")
    elif kind == "x":
        words = re.sub(rb"\s+", b"", body)
        if re.fullmatch(rb"(?:[0-9a-f]{2})+", words):
            source.files[name] = bytes.fromhex(words.decode())
    elif kind == "l":
        source.links[name] = text
    elif kind == "n":
        names = source.children.setdefault(name, set())
        names.update(line for line in text.split("\n") if line)
    elif kind == "d":
        source.folders[name] = dict(sized for line in text.split("\n") if (sized := size_of(line)))
    elif kind == "k":
        row = text.split()
        if len(row) >= 6 and row[-5].isdigit() and row[-3].isdigit():
            source.spaces[name] = (int(row[-5]) * 1024, int(row[-3]) * 1024)
    elif kind == "h":
        port, _, path = name.partition(" ")
        if port.isdigit() and len(port) < 6:
            source.answers[int(port), path] = text
    elif kind == "v":
        source.variables[name] = text


def size_of(line: str) -> tuple[str, int | None] | None:
    """Name and size of a line "SIZE MODE PATH": -1 for a folder, None for a link to nowhere."""
    size, _, rest = line.partition(" ")
    mode, _, path = rest.partition(" ")
    name = path.rsplit("/", 1)[-1]
    if not name:
        return None
    if size == "-":
        return name, None
    if not size.isdigit() or not re.fullmatch(r"[0-9a-f]{1,8}", mode):
        return None
    return name, -1 if int(mode, 16) & 0xF000 == 0x4000 else int(size)


def add_parents(children: dict[str, set[str]], path: str) -> None:
    """Note `path` as a child of its folder, and so on up to the root."""
    while "/" in path.rstrip("/"):
        folder, _, name = path.rstrip("/").rpartition("/")
        names = children.setdefault(folder, set())
        if name in names:
            return
        names.add(name)
        path = folder
