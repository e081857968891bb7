"""Machines with GPUs as reports: of the reference kind, and with whatever a test wants otherwise."""

from pathlib import Path

from appliance.documents import Gpu, Link, MachineReport, ModelReport
from appliance.recon.machine.pasted import report_from
from appliance.recon.model.inspect import Wanted, inspect
from tests.helpers.topology_text import two_nodes

FIXTURES = Path(__file__).parents[1] / "fixtures"
RTX_TEXT = FIXTURES / "8x-rtx-pro-6000.txt"
V4_FOLDER = FIXTURES / "deepseek-v4-flash"
RTX = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def rtx_machine() -> MachineReport:
    """The reference machine: eight RTX PRO 6000, four on each of two nodes, in pairs behind switches."""
    return report_from(RTX_TEXT.read_bytes(), RTX_TEXT.name)


def v4_flash() -> ModelReport:
    """DeepSeek-V4-Flash by its configuration."""
    return inspect(str(V4_FOLDER), Wanted())


def machine(nodes: list[int | None], kinds: list[list[str]] | None = None, **changes) -> MachineReport:
    """RTX PRO 6000 on the given nodes, one each; `kinds` is the link matrix, by default that of two_nodes.

    changes: fields of every GPU.
    """
    count = len(nodes)
    kinds = two_nodes(count) if kinds is None else kinds
    gpus = [
        Gpu(index=n, numa_node=node, **({"name": RTX, "memory_mib": 97887} | changes)) for n, node in enumerate(nodes)
    ]
    links = [Link(a=f"GPU{a}", b=f"GPU{b}", kind=kinds[a][b]) for a in range(count) for b in range(a + 1, count)]
    return MachineReport(gpus=gpus, links=links)
