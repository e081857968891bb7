"""Several tools' output in one text, put together."""

from pathlib import Path

import pytest

from appliance.errors import InputError
from appliance.recon.machine.pasted import report_from
from tests.helpers.topology_text import matrix, two_nodes
from tests.recon.machine.text.test_lspci import TEXT as LSPCI
from tests.recon.machine.text.test_smi import QUERY, TABLE

NODES = (
    "On-line CPU(s) list: 0-238,240-255\nNUMA node0 CPU(s): 0-63,128-191\nNUMA node1 CPU(s): 64-127,192-238,240-255\n"
)
H200 = Path(__file__).parents[2] / "fixtures" / "h200-driver-580.txt"
SHOWN = ["0-63,128-191", "64-127,192-238"]


def report(*texts: str):
    return report_from("\n".join(texts).encode(), "pasted")


def test_a_cut_list_is_replaced_by_the_nodes_own_and_the_source_says_so():
    found = report(NODES, matrix(two_nodes(2), 2, SHOWN, ["0", "1"]))
    assert [gpu.cpu_affinity for gpu in found.gpus] == ["0-63,128-191", "64-127,192-238,240-255"]
    assert [gpu.cpu_affinity_shown for gpu in found.gpus] == [None, "64-127,192-238"]
    assert found.sources["gpus.cpu_affinity"].startswith("lscpu, by the GPU's node")
    assert [node.cpus for node in found.numa_nodes] == ["0-63,128-191", "64-127,192-238,240-255"]
    assert any("cut the CPU list" in note for note in found.notes)


def test_without_a_better_source_a_list_that_may_be_cut_is_no_nodes_list():
    found = report(matrix(two_nodes(2), 2, SHOWN, ["0", "1"]))
    assert [gpu.cpu_affinity for gpu in found.gpus] == SHOWN
    assert [gpu.cpu_affinity_cut for gpu in found.gpus] == [None, None]
    assert [node.cpus for node in found.numa_nodes] == [None, None]
    assert found.sources["gpus.cpu_affinity"] == "nvidia-smi topo -m, which cuts long lists"


def test_a_node_that_an_old_driver_does_not_print_comes_from_the_cpus():
    found = report(NODES, matrix(two_nodes(2), 2, SHOWN, columns=("CPU Affinity",)))
    assert [gpu.numa_node for gpu in found.gpus] == [0, 1]
    assert found.sources["gpus.numa_node"] == "lscpu, by the CPUs near the GPU"
    assert [gpu.cpu_affinity_shown for gpu in found.gpus] == [None, "64-127,192-238"]
    whole = report(NODES, matrix(two_nodes(2), 2, ["0-255"] * 2, columns=("CPU Affinity",)))
    assert [gpu.numa_node for gpu in whole.gpus] == [None, None]


def test_a_gpu_has_the_facts_of_every_tool():
    found = report(TABLE, QUERY, "index, compute_cap\n0, 12.0\n1, 12.0\n", matrix(two_nodes(2), 2))
    first = found.gpus[0]
    assert (first.pci_bus_id, first.power_limit_w, first.compute_capability) == ("0000:c1:00.0", 400, "12.0")
    assert (first.cpu_affinity, first.numa_node, first.pcie.max_gen) == ("0-31", 0, 5)
    assert found.driver == "580.95.05" and found.software.driver_cuda == "13.0"


def test_lspci_gives_the_tree_and_fills_in_what_nvidia_smi_leaves_out():
    listed = "|   0  A card    On  | 00000001:02:00.0 Off | 0 |\n"
    found = report(listed, LSPCI)
    assert [(device.address, device.kind) for device in found.pci_devices] == [
        ("0000:00:01.1", "root_port"),
        ("0001:02:00.0", "gpu"),
    ]
    assert found.gpus[0].numa_node == 1
    assert found.sources["gpus.numa_node"] == "lspci"
    assert found.iommu.groups[0].devices == ["0000:00:01.1"]


def test_unlike_matrices_are_noted_and_the_first_is_taken():
    found = report(matrix(two_nodes(2), 2), matrix(two_nodes(4), 4))
    assert len(found.gpus) == 2
    assert "2 unlike link matrices in the text; the first is taken" in found.notes
    assert report(matrix(two_nodes(2), 2), matrix(two_nodes(2), 2)).notes == []


def test_adapters_that_go_by_their_devices_names_are_nic0_and_on():
    found = report(matrix(two_nodes(2, nics=2), 2, nic="mlx5_{}"))
    assert [(nic.name, nic.device) for nic in found.nics] == [("NIC0", "mlx5_0"), ("NIC1", "mlx5_1")]
    assert {link.b for link in found.links} == {"GPU1", "NIC0", "NIC1"}


@pytest.mark.parametrize("text", ["", "hello", '{"kind": "Plan"}', "[1]", '{"machine": {"kind": "Plan"}}'])
def test_text_without_a_fact_is_refused_in_one_line(text):
    with pytest.raises(InputError) as error:
        report(text)
    assert "\n" not in str(error.value)


def test_the_texts_of_a_real_h200():
    found = report_from(H200.read_bytes(), "pasted")
    assert [gpu.model_dump(include=set(FACTS)) for gpu in found.gpus] == [FACTS]
    assert (found.driver, found.software.driver_cuda, found.links) == ("580.159.04", "13.0", [])
    assert (found.processor.cpus, found.processor.sockets, found.processor.hypervisor) == (16, 1, "KVM")


FACTS = {
    "index": 0,
    "pci_bus_id": "0000:00:06.0",
    "name": "NVIDIA H200",
    "minor": 0,
    "numa_node": 0,
    "cpu_affinity": "0-15",
    "memory_mib": 143771,
    "bar1_mib": 262144,
    "pcie": {"gen": 5, "width": 16, "max_gen": 5, "max_width": 16},
    "power_limit_w": 700.0,
    "power_limit_default_w": 700.0,
    "temperature_c": 37,
    "throttle_reasons": [],
    "mig_enabled": False,
}
"""What NVML said of the same GPU."""
