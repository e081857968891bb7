"""The table that plain `nvidia-smi` prints, `nvidia-smi -L`, and `--query-gpu=... --format=csv`."""

import re

from appliance.recon.machine.text.found_gpu import Facts
from appliance.recon.machine.text.values import decimal, known, mib, pci_address, whole

VERSIONS = re.compile(
    r"\|\s*NVIDIA-SMI\s.{0,60}?(?:Driver|KMD) Version:\s*(\d[\d.]*).{0,60}?CUDA (?:UMD )?Version:\s*(\d[\d.]*|N/A)"
)
FIRST_LINE = re.compile(
    r"\|\s*(\d{1,4})\s+(\S.{1,60}?)\s+(?:On|Off|N/A)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
)
SECOND_LINE = re.compile(
    r"\|\s*\S{1,5}\s+(N/A|ERR!|\d{1,3})C?\s+\S{1,4}\s+(\S{1,8})\s*/\s*(\S{1,8})\s*\|\s*(\d{1,8}MiB)\s*/\s*(\d{1,8}MiB)"
)
MIG = re.compile(r"\|[^|]{0,60}\|[^|]{0,40}\|\s*(Enabled|Disabled)\*?\s*\|")
LISTED = re.compile(
    r"GPU (\d{1,4}(?:,\d{1,4}){0,255}):\s*(\S[^\n(]{1,80}?)\s*(?:\(UUID:\s*(GPU-[0-9a-fA-F-]{8,40})\))?\s*$"
)
LISTED_AT = re.compile(r"\s{0,8}(?:GPU models and configuration\s{0,4}:\s{0,4})?(?=GPU \d)")
MIG_DEVICE = re.compile(r"\s+MIG\s+(\d\S{1,20})\s+Device\s+\d+:")
CSV_HEADER = re.compile(r"[a-z_.]{2,40}(?: \[[^\]]{1,10}\])?(?:, ?[a-z_.]{2,40}(?: \[[^\]]{1,10}\])?)+\s*$")
CSV_FIELDS = {
    "name": ("name", known),
    "gpu_name": ("name", known),
    "uuid": ("uuid", known),
    "gpu_uuid": ("uuid", known),
    "pci.bus_id": ("pci_bus_id", pci_address),
    "gpu_bus_id": ("pci_bus_id", pci_address),
    "compute_cap": ("compute_capability", known),
    "memory.total": ("memory_mib", whole),
    "memory.used": ("memory_used_mib", whole),
    "temperature.gpu": ("temperature_c", whole),
    "power.limit": ("power_limit_w", decimal),
    "power.default_limit": ("power_limit_default_w", decimal),
    "power.draw": ("power_draw_w", decimal),
}


def parse_table(text: str) -> tuple[dict[int, Facts], dict[str, str]]:
    """GPUs by index from the table's two or three lines each, and the versions "driver" and "cuda" of its heading."""
    gpus: dict[int, Facts] = {}
    versions: dict[str, str] = {}
    facts: Facts | None = None
    for line in text.split("\n"):
        if not line.lstrip().startswith("|"):
            continue
        heading = VERSIONS.search(line)
        if heading:
            versions.setdefault("driver", heading[1])
            if known(heading[2]):
                versions.setdefault("cuda", heading[2])
        first = FIRST_LINE.match(line.lstrip())
        second = SECOND_LINE.match(line.lstrip())
        mig = MIG.match(line.lstrip())
        if first:
            name = first[2].strip()
            # the narrow table cuts names: "NVIDIA RTX PRO 6000 Blac..."
            facts = gpus.setdefault(int(first[1]), {"pci_bus_id": pci_address(first[3])})
            facts.setdefault("name", None if name.endswith("...") else name)
        elif second and facts is not None:
            facts["temperature_c"] = whole(second[1])
            facts["power_draw_w"] = decimal(second[2])
            facts["power_limit_w"] = decimal(second[3])
            facts["memory_used_mib"], facts["memory_mib"] = mib(second[4]), mib(second[5])
        elif mig and facts is not None:
            facts["mig_enabled"] = mig[1] == "Enabled"
            facts = None
    return gpus, versions


def parse_list(text: str) -> dict[int, Facts]:
    """GPUs by index from lines such as "GPU 0: NVIDIA H200 (UUID: GPU-...)", with the MIG devices below each."""
    gpus: dict[int, Facts] = {}
    facts: Facts | None = None
    for line in text.split("\n"):
        start = LISTED_AT.match(line)
        listed = LISTED.match(line, start.end()) if start else None
        mig = MIG_DEVICE.match(line)
        if listed:
            for index in map(int, listed[1].split(",")):
                facts = gpus.setdefault(index, {"name": listed[2], "uuid": listed[3]})
        elif mig and facts is not None:
            facts["mig_enabled"] = True
            facts.setdefault("mig_devices", []).append(mig[1])
        elif line.strip():
            facts = None
    return gpus


def parse_csv(text: str) -> tuple[dict[int, Facts], dict[str, str]]:
    """GPUs by index from `--query-gpu` with its header; by the order of the lines where "index" was not asked for."""
    gpus: dict[int, Facts] = {}
    versions: dict[str, str] = {}
    columns: list[str] = []
    for line in text.split("\n"):
        if CSV_HEADER.match(line) and any(field.split(" ")[0] in CSV_FIELDS for field in re.split(", ?", line.strip())):
            columns = [field.split(" ")[0] for field in re.split(", ?", line.strip())]
            rows = 0
            continue
        cells = re.split(", ?", line.strip())
        if not columns or len(cells) != len(columns):
            columns = []
            continue
        row = dict(zip(columns, cells, strict=True))
        index = whole(row.get("index")) if "index" in row else rows
        rows += 1
        if index is None or index > 4095:
            continue
        facts = gpus.setdefault(index, {})
        for column, cell in row.items():
            name, read = CSV_FIELDS.get(column, (None, None))
            if name:
                facts.setdefault(name, read(cell) if known(cell) else None)
        if known(row.get("driver_version")):
            versions.setdefault("driver", row["driver_version"])
    return gpus, versions
