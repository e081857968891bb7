"""Texts as `nvidia-smi topo -m` prints them, written from its layout: tabs, padded cells, two tabs before the last."""

LEGEND = "\n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect\n"


def two_nodes(gpus: int = 8, nics: int = 0) -> list[list[str]]:
    """Kinds of a machine of two nodes whose GPUs sit in pairs behind switches, adapters behind those of GPU 0, 1..."""
    labels = [*range(gpus), *(nic * 2 for nic in range(nics))]
    half = max(1, gpus // 2)

    def kind(a: int, b: int, same: bool) -> str:
        if same:
            return "X"
        if a // half != b // half:
            return "SYS"
        return "PIX" if a // 2 == b // 2 else "NODE"

    return [[kind(a, b, i == j) for j, b in enumerate(labels)] for i, a in enumerate(labels)]


def matrix(
    kinds: list[list[str]],
    gpus: int,
    cpus: list[str] | None = None,
    nodes: list[str] | None = None,
    columns: tuple[str, ...] = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"),
    nic: str = "NIC{}",
    own: list[str] | None = None,
) -> str:
    """The text of a matrix of `kinds`, the first `gpus` rows GPUs and the rest adapters."""
    labels = [f"GPU{n}" for n in range(gpus)] + [nic.format(n) for n in range(len(kinds) - gpus)]
    cpus = cpus or ["0-31"] * gpus
    nodes = nodes or ["0"] * gpus
    own = own or ["N/A"] * gpus
    lines = ["\t\x1b[4m" + "\t".join([*labels, *columns]) + "\x1b[0m"]
    for row, label in enumerate(labels):
        line = label + "\t" + "\t".join(" X " if cell == "X" else cell for cell in kinds[row])
        if row < gpus:
            tails = {"CPU Affinity": cpus[row], "NUMA Affinity": nodes[row], "GPU NUMA ID": "\t" + own[row]}
            line += "".join("\t" + tails[column] for column in columns)
        else:
            line += "\t" * len(columns)
        lines.append(line)
    return "\n".join(lines) + LEGEND


def with_blanks(text: str) -> str:
    """The text as a terminal shows it: tabs as blanks up to the next multiple of eight."""
    return text.expandtabs(8)


def wrapped(text: str, width: int) -> str:
    """The text as a terminal of `width` columns hands it on: each line broken there, in the middle of cells as well."""
    lines = [line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width)]
    return "\n".join(lines)
