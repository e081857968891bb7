"""`nvidia-smi topo -m`, as people paste it.

The matrix is read cell by cell after its row's label, never by column position: tabs become blanks, cells are
glued ("SYSSYS"), lines wrapped. The affinity columns behind it are told apart by their form and number, since
empty cells vanish. What two readings would both fit stays null, with a note.
"""

import re
from dataclasses import dataclass, field

from appliance.recon.machine.text import cpu_text
from appliance.recon.machine.text.values import known

CELL = re.compile(r"\s*(NV\d{1,2}|SYS|NODE|PHB|PXB|PIX|PSB|SOC|N/A|X)(?=[\s\dNSPX]|$)")
ROW = re.compile(r"[\s>|]*(GPU\d{1,4}|NIC\d{1,4}|[A-Za-z][A-Za-z0-9]{1,14}(?:_[A-Za-z0-9]+){0,3})(?=[\s|])")
HEADER = re.compile(r"[\s>|]*GPU\d{1,4}(?!\d)")
LABEL = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|(?:mlx\d|bnxt|irdma|hfi|efa|rdma|roce|ib|cxi)\w{0,24}?(?=mlx\d|\s|$)|\w+")
COLUMNS = re.compile(r"CPU\s*Affinity|NUMA\s*Affinity|GPU\s*NUMA\s*ID")
REMAINDER = re.compile(r"[\s\d,N/A-]{1,64}")
NARROWEST = 32
"""A shorter header was not broken by any terminal."""
MOST_WRAPS = 64
"""A header or a row is never broken into more lines than this: what follows then is something else."""
NIC_LEGEND = re.compile(r"\s*(NIC\d{1,4})\s*:\s*(\S.*)$")
SUFFIX = re.compile(r"\(?NUMA\s*(?:node)?\s*[:=#]?\s*(\d{1,4})\)?", re.IGNORECASE)
CUT_NAMES = {"C", "CP", "CPU", "N", "NU", "NUM", "NUMA", "G", "GP", "GPU"}
LONGEST_HEADER = 65_536
DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{1,31}")


@dataclass
class Row:
    """One GPU's or adapter's row: its cells in column order, and the affinity columns."""

    label: str
    cells: list[str]
    cpu_affinity: str | None = None
    numa: str | None = None
    gpu_numa_id: int | None = None


@dataclass
class Topology:
    """A matrix: labels of its columns in order, its rows by label, and the devices that the legend names."""

    columns: list[str]
    rows: dict[str, Row]
    devices: dict[str, str | None]
    """RDMA device by adapter label; None where the legend's line is damaged."""
    notes: list[str] = field(default_factory=list)

    @property
    def gpus(self) -> list[int]:
        """Indices of the GPUs that have a row or a column."""
        labels = dict.fromkeys([*self.rows, *self.columns])
        return sorted(int(label[3:]) for label in labels if is_gpu(label))

    @property
    def adapters(self) -> list[str]:
        """Labels of the network adapters in column order."""
        return [label for label in dict.fromkeys([*self.columns, *self.rows]) if not is_gpu(label)]

    def link(self, a: str, b: str) -> str | None:
        """The kind of link between two labels, from either half of the matrix; None if absent or contradictory."""
        kinds = {kind for kind in (self.cell(a, b), self.cell(b, a)) if kind not in (None, "X", "N/A")}
        return kinds.pop() if len(kinds) == 1 else None

    def cell(self, row: str, column: str) -> str | None:
        """The cell as printed, or None if the row or the column is not there, or the row was cut before it."""
        if row not in self.rows or column not in self._places:
            return None
        cells, place = self.rows[row].cells, self._places[column]
        return cells[place] if place < len(cells) else None

    def __post_init__(self) -> None:
        self._places = {label: place for place, label in enumerate(self.columns)}


def is_gpu(label: str) -> bool:
    """Whether a label is GPU0, GPU1, ..."""
    return label.startswith("GPU") and label[3:].isdigit()


def topologies(text: str) -> list[Topology]:
    """Every link matrix in cleaned `text`, in order; texts around them are passed over."""
    lines = text.split("\n")
    found = []
    at = 0
    while at < len(lines):
        columns, affinities, after = read_header(lines, at)
        rows, end = read_rows(lines, after, columns, affinities, len(lines[at]))
        if rows and holds_links(rows, columns):
            matrix = Topology(columns or [row.label for row in rows], {}, {})
            for row in rows:
                matrix.rows.setdefault(row.label, row)
            found.append(matrix)
        at = max(end, after, at + 1)
    legends = nic_legends(lines)
    for matrix in found:
        finish(matrix, legends)
    return found


def read_header(lines: list[str], at: int) -> tuple[list[str], list[str], int]:
    """Column labels and affinity columns of a header at line `at` with its wrapped lines, and the line after it."""
    columns, affinities = header_line(lines[at])
    if not columns:
        return [], [], at
    header, at = lines[at], at + 1
    end = at + (MOST_WRAPS if len(header) >= NARROWEST else 0)
    while at < min(len(lines), end) and not is_row(lines[at], columns):
        # a wrap adds nothing, and what it cuts in two (a label, a name) is whole again without a blank
        more, names = header_line(header + lines[at])
        longer = len(more) > len(columns) or len(names) > len(affinities) or more[-1:] != columns[-1:]
        if not longer or more[: len(columns) - 1] != columns[:-1]:
            break
        header, columns, affinities = header + lines[at], more, names
        at += 1
    return columns, affinities, at


def header_line(line: str) -> tuple[list[str], list[str]]:
    """Labels and affinity columns of a header; none if it is not one."""
    line = line.replace("|", " ")
    affinities = [name[0][:3].upper() + ("ID" if name[0].startswith("GPU") else "") for name in COLUMNS.finditer(line)]
    start = COLUMNS.search(line)
    labels = line[: start.start()] if start else line
    if not HEADER.match(labels) or len(labels) > LONGEST_HEADER:
        return [], []
    names = [name for name in LABEL.findall(labels.lstrip(" >")) if name not in CUT_NAMES]
    if not all(DEVICE.fullmatch(name) and (name[-1].isdigit() or "_" in name) for name in names[:-1]):
        return [], []
    if any(CELL.fullmatch(name) for name in names):
        return [], []
    # the last one may be a label cut by a wrap, or the beginning of a column's name
    return [name for name in names if re.search(r"\d", name)], affinities


def is_row(line: str, columns: list[str]) -> bool:
    """Whether `line` begins with a label and a cell."""
    label = ROW.match(line)
    if not label or not (is_gpu(label[1]) or label[1].startswith("NIC") or label[1] in columns):
        return False
    return CELL.match(line.replace("|", " "), label.end()) is not None


def read_rows(
    lines: list[str], at: int, columns: list[str], affinities: list[str], width: int
) -> tuple[list[Row], int]:
    """The rows from line `at` on, each with its wrapped lines, and the line after the last one.

    `width` is the length of the header's first line: a line of just that length may have been broken by a terminal.
    """
    rows = []
    known_labels = frozenset(columns)
    blanks = 0
    while at < len(lines):
        line = lines[at]
        if not is_row(line, known_labels):
            # blank lines between rows do not end the matrix, other text does
            if line.strip() or blanks > 1 or not (rows or columns):
                break
            blanks += 1
            at += 1
            continue
        blanks = 0
        label = ROW.match(line)[1]
        body = line[ROW.match(line).end() :].replace("|", " ")
        cells, tail = split_cells(body, len(columns))
        at += 1
        end = at + MOST_WRAPS
        while at < min(len(lines), end):
            broken = len(lines[at - 1]) == width
            if not continues(lines[at], known_labels, cells, tail, columns, affinities, broken):
                break
            body = body + lines[at].replace("|", " ") if broken else join(body, lines[at].replace("|", " "))
            cells, tail = split_cells(body, len(columns))
            at += 1
        row = Row(label, cells)
        if is_gpu(label):
            read_affinities(row, tail, affinities)
        rows.append(row)
    return rows, at


def split_cells(body: str, count: int) -> tuple[list[str], str]:
    """The link cells at the beginning of a row's body, `count` at most (0: all there are), and what follows."""
    cells = []
    at = 0
    while not count or len(cells) < count:
        cell = CELL.match(body, at)
        if not cell or (not count and cell[1] == "N/A"):
            break
        cells.append(cell[1])
        at = cell.end()
    return cells, body[at:]


def continues(
    line: str,
    labels: frozenset[str],
    cells: list[str],
    tail: str,
    columns: list[str],
    affinities: list[str],
    broken: bool,
) -> bool:
    """Whether `line` is the wrapped remainder of the row before it, of which `cells` and `tail` were read so far."""
    if not columns or not line.strip() or is_row(line, labels) or HEADER.match(line):
        return False
    if len(cells) < len(columns):
        return bool(CELL.match(line) or CELL.match(tail.strip() + line.split(None, 1)[0]))
    missing = len(tail.split()) < len(affinities) and bool(affinities)
    return (missing or broken) and REMAINDER.fullmatch(line.rstrip()) is not None


def join(body: str, line: str) -> str:
    """A row's body and its wrapped remainder: glued where the wrap cut a cell in two, otherwise with a blank."""
    last, first = body.split()[-1:], line.split()[:1]
    if line[:1].isspace() or body[-1:].isspace() or not last or not first:
        return f"{body} {line}"
    cut = not CELL.fullmatch(last[0]) or not CELL.match(first[0])
    return f"{body}{line}" if cut and CELL.match(last[0] + first[0]) else f"{body} {line}"


def holds_links(rows: list[Row], columns: list[str]) -> bool:
    """Whether rows are a link matrix and not another one that looks alike (`topo -p2p` has OK and CNS as cells)."""
    if len(rows) == 1:
        return "X" in rows[0].cells and len(rows[0].cells) >= min(len(columns), 2)
    return sum(len(row.cells) for row in rows) > len(rows)


def read_affinities(row: Row, tail: str, columns: list[str]) -> None:
    """Fill a row's affinities from what follows its cells. Columns are "CPU", "NUM" and "GPUID" as the header has."""
    suffix = SUFFIX.search(tail)
    if suffix and not re.match(r"\s*[\d,-]+\s", tail):
        row.numa = suffix[1]  # written by hand behind the row: "NUMA 0"
        return
    words = tail.split()[: max(len(columns), 3)]
    if not words:
        return
    words = unglue(words, columns)
    if columns and len(words) >= len(columns):
        values = dict(zip(columns, words, strict=False))
    elif columns:
        values = by_form(words, columns, tail)
    else:
        values = {"CPU": words[0]} if cpu_text.ranges(words[0]) and not words[0].isdigit() else {}
    cpus = known(values.get("CPU"))
    row.cpu_affinity = cpus if cpu_text.ranges(cpus) else None
    numa = known(values.get("NUM"))
    row.numa = numa if cpu_text.ranges(numa) else None
    own = known(values.get("GPUID"))
    row.gpu_numa_id = int(own) if own and own.isdigit() and len(own) < 6 else None


def by_form(words: list[str], columns: list[str], tail: str) -> dict[str, str]:
    """Fewer words than columns, since empty cells leave nothing: only what its form or its tabs tell for certain."""
    cells = [cell.strip() for cell in tail.split("\t")]
    if "\t" in tail and len(cells) >= len(columns):
        # nvidia-smi puts two tabs before the GPU's own node: an empty cell there is no column
        cells = cells[1:] if not cells[0] and len(cells) > len(columns) + 1 else cells
        if "GPUID" in columns and len(cells) > len(columns):
            return dict(zip(columns, [*cells[:2], cells[-1]], strict=False))
        return dict(zip(columns, cells, strict=False))
    if "CPU" in columns and ("-" in words[0] or "," in words[0]):
        return {"CPU": words[0]}
    return {}


def unglue(words: list[str], columns: list[str]) -> list[str]:
    """Words with "0-47,96-1430N/A" taken apart, where that can be done in one way only."""
    if len(words) >= len(columns):
        return words
    first = words[0]
    rest = words[1:]
    if first.endswith("N/A") and first != "N/A":
        first, rest = first.removesuffix("N/A"), ["N/A", *rest]
    if 1 + len(rest) < len(columns):
        split = cpu_text.split_glued(first)
        if split:
            return [*split, *rest]
        if first != words[0]:
            return ["N/A"]  # glued, and in more than one way
    return [first, *rest]


def nic_legends(lines: list[str]) -> dict[str, str | None]:
    """Device by adapter from the lines of a NIC legend ("NIC0: mlx5_0"); None for a line that holds no device."""
    found: dict[str, str | None] = {}
    for line in lines:
        legend = NIC_LEGEND.match(line)
        if legend:
            device = legend[2].strip()
            found.setdefault(legend[1], device if DEVICE.fullmatch(device) and not COLUMNS.search(device) else None)
    return found


def finish(matrix: Topology, legends: dict[str, str | None]) -> None:
    """Name the adapters' devices, and note what does not fit together."""
    for label in matrix.adapters:
        matrix.devices[label] = legends.get(label) if label.startswith("NIC") else label
    short = [row.label for row in matrix.rows.values() if len(row.cells) < len(matrix.columns)]
    if short:
        matrix.notes.append(f"link matrix: rows cut short: {', '.join(short[:8])}; their missing cells are unknown")
    unequal = 0
    for row in matrix.rows.values():
        for column, kind in zip(matrix.columns, row.cells, strict=False):
            other = matrix.cell(column, row.label)
            unequal += other is not None and "N/A" not in (kind, other) and kind != other
    if unequal:
        matrix.notes.append(f"link matrix: {unequal // 2} pairs differ between its two halves; they are left out")
    absent = sorted({*matrix.columns} - {*matrix.rows}, key=lambda label: (not is_gpu(label), label))
    if absent and matrix.rows:
        matrix.notes.append(f"link matrix: no row for {', '.join(absent[:8])}")
