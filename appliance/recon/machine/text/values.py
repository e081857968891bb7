"""Single values as tools print them; what is not one is None."""

import re

ABSENT = {"", "n/a", "[n/a]", "not available", "could not collect", "none", "unknown", "unknown error", "not found"}
NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")
MIB_IN = {"kib": 1 / 1024, "kb": 1 / 1024, "mib": 1, "mb": 1, "gib": 1024, "gb": 1024}


def known(text: str | None) -> str | None:
    """`text` stripped, or None where it says that there is no value ("N/A", "Could not collect", "[N/A]")."""
    text = (text or "").strip()
    return None if text.lower() in ABSENT or text.lower().startswith("requested functionality") else text


def whole(text: str | None) -> int | None:
    """The whole number that `text` is or begins with ("16x", "26 C", "97887 MiB"), or None."""
    found = NUMBER.match((text or "").strip())
    return int(float(found[0])) if found else None


def decimal(text: str | None) -> float | None:
    """The number that `text` is or begins with ("600.00 W"), or None."""
    found = NUMBER.match((text or "").strip())
    return float(found[0]) if found else None


def mib(text: str | None) -> int | None:
    """An amount of memory with its unit ("97887 MiB", "24684172 kB") as whole MiB, or None."""
    found = re.match(r"\s*(\d{1,15})\s{0,8}([KMG]i?B)\b", text or "", re.IGNORECASE)
    return int(int(found[1]) * MIB_IN[found[2].lower()]) if found else None


def pci_address(text: str | None) -> str | None:
    """A PCI address as sysfs writes it, from nvidia-smi's "00000000:C1:00.0" or lspci's "c1:00.0"; or None."""
    found = re.fullmatch(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", (text or "").strip().lower())
    return f"{int(found[1] or '0', 16):04x}:{found[2]}:{found[3]}.{found[4]}" if found else None
