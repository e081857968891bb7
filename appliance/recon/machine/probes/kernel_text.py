"""Values in the kernel's small files."""

from appliance.recon.machine.source import Source

GENERATION_BY_GT_PER_S = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def whole(value: str | None) -> int | None:
    """A whole number from its decimal text, or None; also for -1, with which the kernel says "none"."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 16 else None


def generation(speed: str | None) -> int | None:
    """PCIe generation of a link speed such as "32.0 GT/s PCIe", or None (PCIe base specification)."""
    return GENERATION_BY_GT_PER_S.get((speed or "").split(" ")[0])


def width(value: str | None) -> int | None:
    """Lanes of a link; the kernel writes 0 or 255 for a link that is not there."""
    lanes = whole(value)
    return lanes if lanes and lanes < 64 else None


def pairs(text: str | None, separator: str = ":") -> dict[str, str]:
    """The `key: value` lines of a kernel file; the first of each key."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        key, mark, value = line.partition(separator)
        if mark:
            found.setdefault(key.strip(), value.strip())
    return found


def kib_to_mib(value: str | None) -> int | None:
    """ "24684172 kB" as whole MiB, or None."""
    number = whole((value or "").removesuffix(" kB").strip())
    return None if number is None else number // 1024


def pcie_link(source: Source, folder: str) -> dict[str, int]:
    """The facts of a PcieLink from a device's folder in sysfs, without those that are not there."""
    found = {
        "gen": generation(source.text(f"{folder}/current_link_speed")),
        "width": width(source.text(f"{folder}/current_link_width")),
        "max_gen": generation(source.text(f"{folder}/max_link_speed")),
        "max_width": width(source.text(f"{folder}/max_link_width")),
    }
    return {name: value for name, value in found.items() if value is not None}
