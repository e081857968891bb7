"""CPU lists as the kernel writes them (Documentation/admin-guide/cputopology.rst)."""


def parse(text: str) -> set[int]:
    """The CPUs of a kernel list such as "0-3,8"."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def as_text(cpus: set[int]) -> str:
    """CPUs as a kernel list: {0, 1, 2, 8} is "0-2,8"; nothing is "none"."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges) or "none"
