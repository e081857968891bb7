"""CPU lists in text that cannot be trusted: as ranges and never expanded, since "0-999999999" is a few bytes."""

import re

CPU_LIST = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*")
CELL = 15
"""nvidia-smi's room for a CPU list: whole elements up to this many characters, the rest is left out."""


def ranges(text: str | None) -> list[tuple[int, int]] | None:
    """The (first, last) ranges of a kernel CPU list in the order written, or None if it is none."""
    text = (text or "").strip()
    if not CPU_LIST.fullmatch(text):
        return None
    pairs = [part.partition("-") for part in text.split(",")]
    found = [(int(first), int(last or first)) for first, _, last in pairs]
    return found if all(first <= last for first, last in found) else None


def from_ids(ids: list[int]) -> str:
    """CPU ids as a kernel list: [0, 1, 2, 8] is "0-2,8"; none is ""."""
    found: list[list[int]] = []
    for cpu in sorted(set(ids)):
        if found and cpu == found[-1][1] + 1:
            found[-1][1] = cpu
        else:
            found.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def normal(text: str) -> list[tuple[int, int]] | None:
    """Ranges sorted and joined, so that two ways to write the same list are equal."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges(text) or []):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged or None


def may_be_cut(shown: str) -> bool:
    """Whether nvidia-smi could have left out an element after `shown`: one more would not have fitted its cell."""
    last = (ranges(shown) or [(0, 0)])[-1][1]
    return len(shown) + len(f",{last + 2}") >= CELL


def looks_cut(shown: str) -> bool:
    """Whether `shown` is a run of single CPUs that ends where the cell does: even or odd numbering, cut."""
    found = ranges(shown) or []
    return len(found) >= 5 and all(first == last for first, last in found) and may_be_cut(shown)


def is_cut_of(shown: str, whole: str) -> bool:
    """Whether `shown` is the beginning of the list `whole`, element by element, and not all of it."""
    part, all_of_it = ranges(shown), ranges(whole)
    return bool(part and all_of_it) and len(part) < len(all_of_it) and all_of_it[: len(part)] == part


def split_glued(text: str) -> tuple[str, str] | None:
    """A CPU list and the node number that lost the blank between them: "0-47,96-1430" is "0-47,96-143" and "0".

    Only where one split alone makes the last range as long as the first (both threads of the same cores);
    otherwise None: the digits could be either's.
    """
    found = ranges(text)
    if not found or len(found) < 2:
        return None
    length = found[0][1] - found[0][0]
    if found[-1][1] - found[-1][0] == length:
        return None
    splits = []
    for digits in (1, 2):
        head, tail = text[:-digits], text[-digits:]
        cut = ranges(head)
        plain = tail == "0" or not tail.startswith("0")
        if cut and len(cut) == len(found) and cut[-1][1] - cut[-1][0] == length and plain:
            splits.append((head, tail))
    return splits[0] if len(splits) == 1 else None
