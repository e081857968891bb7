"""`nvidia-smi -q`, by the last heading and the key: indentation is lost where people paste."""

import re

from appliance.recon.machine.text.found_gpu import Facts
from appliance.recon.machine.text.values import decimal, known, mib, pci_address, whole

GPU = re.compile(r"\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
PAIR = re.compile(r"\s*(\S[^:]{0,60}?)\s*:(?:\s(.*))?$")
NEUTRAL = {"Idle", "Applications Clocks Setting", "Display Clock Setting", "Sync Boost"}
THROTTLES = ("Clocks Event Reasons", "Clocks Throttle Reasons")
POWER = ("GPU Power Readings", "Power Readings")
SINGLE = {
    "Product Name": ("name", known),
    "GPU UUID": ("uuid", known),
    "Minor Number": ("minor", whole),
    "Bus Id": ("pci_bus_id", pci_address),
    "GPU Current Temp": ("temperature_c", whole),
}
IN_SECTION = {
    ("FB Memory Usage", "Total"): ("memory_mib", mib),
    ("FB Memory Usage", "Used"): ("memory_used_mib", mib),
    ("BAR1 Memory Usage", "Total"): ("bar1_mib", mib),
}
LINK = {
    ("PCIe Generation", "Current"): "gen",
    ("PCIe Generation", "Max"): "max_gen",
    ("Link Width", "Current"): "width",
    ("Link Width", "Max"): "max_width",
}
WATTS = {
    "Current Power Limit": "power_limit_w",
    "Power Limit": "power_limit_w",
    "Default Power Limit": "power_limit_default_w",
    "Average Power Draw": "power_draw_w",
    "Power Draw": "power_draw_w",
}


def parse(text: str) -> tuple[dict[int, Facts], dict[str, str]]:
    """GPUs by index (the order of the listing is the driver's), and the driver's versions by name.

    The versions are "driver" and "cuda", as far as the heading has them.
    """
    gpus: dict[int, Facts] = {}
    versions: dict[str, str] = {}
    section = ""
    facts: Facts | None = None
    for line in text.split("\n"):
        start = GPU.match(line)
        if start:
            facts = gpus.setdefault(len(gpus), {"pci_bus_id": pci_address(start[1])})
            section = ""
            continue
        pair = PAIR.match(line)
        if pair is None:
            heading = line.strip()
            # a shell prompt ends the listing; what follows is another command's
            if heading.startswith(("$ ", "# ")) or re.match(r"\S{1,40}@\S{1,60}[:~]", heading):
                facts = None
            section = heading or section
            continue
        key, value = pair[1], pair[2]
        if facts is None:
            if key in ("Driver Version", "KMD Version") and known(value):
                versions.setdefault("driver", value.strip())
            if key in ("CUDA Version", "CUDA UMD Version") and known(value):
                versions.setdefault("cuda", value.strip())
            continue
        if not (value or "").strip() and key not in SINGLE:
            section = key  # a heading that some versions print with a colon
            continue
        read_pair(facts, section, key, value)
        if key == "Processes" and value.strip() == "None":
            facts["processes"] = []
    for facts in gpus.values():
        facts["processes"] = as_processes(facts.pop("process_facts", None), facts.get("processes"))
    return gpus, versions


def read_pair(facts: Facts, section: str, key: str, value: str | None) -> None:
    """Take one `key : value` line of a GPU's listing under `section` into its facts."""
    if key in SINGLE:
        name, read = SINGLE[key]
        facts.setdefault(name, read(value))
    elif (section, key) in IN_SECTION:
        name, read = IN_SECTION[section, key]
        facts[name] = read(value)
    elif (section, key) in LINK:
        facts.setdefault("pcie", {})[LINK[section, key]] = whole(value)
    elif section in POWER and key in WATTS:
        facts.setdefault(WATTS[key], decimal(value))
    elif section in THROTTLES:
        if value.strip() in ("Active", "Not Active"):
            reasons = facts.setdefault("throttle_reasons", [])
            if value.strip() == "Active" and key not in NEUTRAL:
                reasons.append(key)
    elif section == "MIG Mode" and key == "Current":
        facts["mig_enabled"] = {"Enabled": True, "Disabled": False}.get(value.strip())
    elif section == "Processes" and key == "Process ID":
        facts.setdefault("process_facts", []).append({"pid": whole(value)})
    elif section == "Processes" and facts.get("process_facts"):
        field = {"Name": "name", "Used GPU Memory": "memory_mib"}.get(key)
        if field:
            facts["process_facts"][-1][field] = mib(value) if field == "memory_mib" else known(value)


def as_processes(found: list[dict] | None, empty: object) -> list | None:
    """GpuProcess parts, [] where the listing says that there are none, None where it does not say."""
    from appliance.documents.machine import GpuProcess

    if found:
        return [GpuProcess(**facts) for facts in found if facts["pid"] is not None]
    return empty
