"""Which CPUs are near a GPU, when nvidia-smi's own list may be cut and a better one is at hand."""

from appliance.recon.machine.text import cpu_text

MOST_NODES = 1024
"""The kernel's own limit (CONFIG_NODES_SHIFT is 10 at most): a text with more of them is not one machine's."""


def best(shown: str | None, node: int | None, node_cpus: dict[int, str]) -> dict[str, object]:
    """The cpu_affinity fields of a Gpu, from what nvidia-smi showed and the CPUs of the nodes that another source has.

    The node's list replaces what was shown only where that is its beginning: a list that is another one is a
    cpuset's or a MIG device's, and stays.
    """
    if shown is None:
        return {}
    whole = node_cpus.get(node) if node is not None else None
    if whole and cpu_text.is_cut_of(shown, whole) and cpu_text.may_be_cut(shown):
        return {"cpu_affinity": whole, "cpu_affinity_cut": False, "cpu_affinity_shown": shown}
    if whole and cpu_text.normal(shown) == cpu_text.normal(whole):
        return {"cpu_affinity": shown, "cpu_affinity_cut": False}
    return {"cpu_affinity": shown, "cpu_affinity_cut": cut(shown)}


def node_of(shown: str | None, node_cpus: dict[int, str]) -> int | None:
    """The one node that has all CPUs of a GPU's list, for drivers that print no node; None for none or several."""
    inside = cpu_text.normal(shown or "")
    if inside is None or len(node_cpus) > MOST_NODES:
        return None
    holders = []
    for node, cpus in node_cpus.items():
        around = cpu_text.normal(cpus) or []
        if all(any(first <= a and b <= last for first, last in around) for a, b in inside):
            holders.append(node)
    return holders[0] if len(holders) == 1 else None


def cut(shown: str) -> bool | None:
    """Whether a list that nvidia-smi showed is cut; None where it cannot be told from the list alone."""
    if not cpu_text.may_be_cut(shown):
        return False
    return True if cpu_text.looks_cut(shown) else None


def fit_together(lists: set[str]) -> bool:
    """Whether nodes' lists are whole by their form: each two ranges of one length (a core's two threads), and no CPU
    missing between the first and the last of all. A cut list would leave a hole or an odd range.
    """
    found = [cpu_text.ranges(shown) or [] for shown in lists]
    paired = all(len(pair) == 2 and pair[0][1] - pair[0][0] == pair[1][1] - pair[1][0] for pair in found)
    if not found or not paired:
        return False
    every = sorted(pair for pairs in found for pair in pairs)
    return every[0][0] == 0 and all(a[1] + 1 == b[0] for a, b in zip(every, every[1:], strict=False))
