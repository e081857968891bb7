"""`lspci -vvv`: links, NUMA nodes, IOMMU groups and ACS of the devices it lists."""

import re
from dataclasses import dataclass, field

from appliance.documents.machine import Acs

DEVICE = re.compile(
    r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "  # address
    r"([^:\n]{2,60})(?: \[[0-9a-f]{4}\])?: (.{1,300})$"  # class, description
)
SPEED = re.compile(r"Speed (\d{1,2}(?:\.\d)?)GT/s[^,]{0,20}, Width x(\d{1,2})")
FLAG = re.compile(r"(\w{3,12})([+-])")
GENERATION = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}


@dataclass
class Listed:
    """One device of the listing."""

    address: str
    class_name: str
    description: str
    numa_node: int | None = None
    iommu_group: int | None = None
    link: dict[str, int] = field(default_factory=dict)
    acs: Acs | None = None
    port: str | None = None
    """"Root Port", "Upstream Port", "Downstream Port", "Endpoint" as the express capability says."""
    bus_range: tuple[int, int] | None = None


def parse(text: str) -> list[Listed]:
    """The devices that cleaned `text` lists, in order. Text that is not lspci's yields none."""
    found: list[Listed] = []
    capable: list[str] = []
    for line in text.split("\n"):
        start = DEVICE.match(line)
        if start:
            address = start[1] if start[1].count(":") == 2 else f"0000:{start[1]}"
            found.append(Listed(address[-12:], start[2].strip(), start[3].strip()))
            capable = []
        elif found and line[:1] in ("\t", " "):
            capable = read_detail(found[-1], line.strip(), capable)
    return found


def read_detail(device: Listed, line: str, capable: list[str]) -> list[str]:
    """Take one indented line into `device`; returns the ACS capabilities read so far."""
    speed = SPEED.search(line)
    if line.startswith(("LnkCap:", "LnkSta:")) and speed:
        prefix = "max_" if line.startswith("LnkCap:") else ""
        generation = GENERATION.get(speed[1])
        if generation:
            device.link.setdefault(f"{prefix}gen", generation)
        device.link.setdefault(f"{prefix}width", int(speed[2]))
    elif line.startswith("NUMA node:") and line[10:].strip().isdigit():
        device.numa_node = int(line[10:].strip()[:6])
    elif line.startswith("IOMMU group:") and line[12:].strip().isdigit():
        device.iommu_group = int(line[12:].strip()[:9])
    elif line.startswith("ACSCap:"):
        return [name for name, on in FLAG.findall(line[7:]) if on == "+"]
    elif line.startswith("ACSCtl:"):
        device.acs = Acs(capable=capable, enabled=[name for name, on in FLAG.findall(line[7:]) if on == "+"])
    elif "Express" in line and device.port is None:
        port = re.search(r"(Root Port|Upstream Port|Downstream Port|Endpoint)", line)
        device.port = port[1] if port else None
    elif line.startswith("Bus:"):
        buses = re.search(r"secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})", line)
        device.bus_range = (int(buses[1], 16), int(buses[2], 16)) if buses else None
    return capable
