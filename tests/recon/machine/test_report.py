import os
from pathlib import Path

import pytest

from appliance.errors import ProbeIncomplete
from appliance.recon.concurrency import Outcome
from appliance.recon.machine import machine_report
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.report import put_together
from appliance.recon.machine.source import LocalSource
from tests.helpers.machine_files import pci_device, two_sockets, write


@pytest.fixture
def two_node_machine(tmp_path) -> Path:
    """Files as the kernel shows them on a machine with two nodes; written for this test."""
    write(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9575F 64-Core Processor",
            "proc/meminfo": "MemTotal:       1584000000 kB",
            "proc/self/status": "Name:\tx\nCpus_allowed_list:\t0-63",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release",
            "sys/devices/system/node/node0/cpulist": "0-31",
            "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       792000000 kB",
            "sys/devices/system/node/node1/cpulist": "32-63",
            "sys/devices/system/node/node10/cpulist": "",
        },
    )
    write(tmp_path, pci_device("0000:c1:00.0", numa_node="1", local_cpulist="32-63", current_link_width="8"))
    write(tmp_path, pci_device("0000:01:00.0"))
    write(tmp_path, pci_device("0000:02:00.0", numa_node="-1"))
    write(tmp_path, pci_device("0000:03:00.0", vendor="0x1002"))
    write(tmp_path, pci_device("0000:04:00.0", **{"class": "0x040300"}))
    return tmp_path


def test_gpus_are_numbered_in_bus_order_and_other_devices_are_left_out(two_node_machine):
    gpus = machine_report(two_node_machine).gpus
    assert [(gpu.index, gpu.pci_bus_id) for gpu in gpus] == [
        (0, "0000:01:00.0"),
        (1, "0000:02:00.0"),
        (2, "0000:c1:00.0"),
    ]


def test_a_gpu_without_a_node_has_null_and_not_minus_one(two_node_machine):
    assert [gpu.numa_node for gpu in machine_report(two_node_machine).gpus] == [0, None, 1]


def test_link_width_now_and_at_most_are_two_facts(two_node_machine):
    pcie = machine_report(two_node_machine).gpus[2].pcie
    assert (pcie.gen, pcie.width, pcie.max_width) == (5, 8, 16)


def test_nodes_are_ordered_by_number_and_know_their_gpus(two_node_machine):
    nodes = machine_report(two_node_machine).numa_nodes
    assert [(node.id, node.cpus, node.gpus) for node in nodes] == [(0, "0-31", [0]), (1, "32-63", [2]), (10, "", [])]


def test_processor_memory_and_driver(two_node_machine):
    report = machine_report(two_node_machine)
    assert report.cpu_model == "AMD EPYC 9575F 64-Core Processor"
    assert report.memory_mib == 1584000000 // 1024
    assert report.driver == "580.95.05"


def test_a_machine_of_which_nothing_can_be_read_is_reported_with_reasons(tmp_path):
    report = machine_report(tmp_path)
    assert (report.gpus, report.numa_nodes, report.driver, report.memory_mib) == ([], [], None, None)
    assert report.sources["driver"].startswith("absent")
    assert report.nics is report.models is report.pci_devices is None


def test_this_machine():
    report = machine_report()
    assert report.kernel == os.uname().release
    assert report.memory_mib > 0


def outcomes(**facts) -> dict[str, Outcome]:
    """Outcomes of probes that found `facts`, each under its own name."""
    return {name: Outcome(value=Findings({name: value}, {name: "test"})) for name, value in facts.items()}


def test_a_whole_machine(tmp_path):
    report = machine_report(two_sockets(tmp_path))
    assert [gpu.numa_node for gpu in report.gpus] == [0, 0, 1, 1]
    assert [gpu.cpu_affinity for gpu in report.gpus] == ["0-31", "0-31", "32-63", "32-63"]
    assert [node.gpus for node in report.numa_nodes] == [[0, 1], [2, 3]]
    assert report.numa_distances == [[10, 32], [32, 10]]
    assert {(link.a, link.b): link.kind for link in report.links} == {
        ("GPU0", "GPU1"): "PIX",
        ("GPU0", "GPU2"): "SYS",
        ("GPU0", "GPU3"): "SYS",
        ("GPU0", "NIC0"): "PIX",
        ("GPU1", "GPU2"): "SYS",
        ("GPU1", "GPU3"): "SYS",
        ("GPU1", "NIC0"): "PIX",
        ("GPU2", "GPU3"): "PHB",
        ("GPU2", "NIC0"): "SYS",
        ("GPU3", "NIC0"): "SYS",
    }
    assert report.sources["links"].startswith("derived from the PCIe tree")
    assert report.gpus_without_driver is None


def test_a_gpu_that_the_driver_does_not_show_is_named(tmp_path):
    source = LocalSource(two_sockets(tmp_path))
    shown = {0: {"pci_bus_id": "0000:03:00.0", "name": "A"}, 1: {"pci_bus_id": "0000:81:00.0", "name": "A"}}
    from appliance.recon.machine.probes import pci

    found = {"gpus": Outcome(value=Findings({"driver_gpus": shown}, {"driver_gpus": "NVML"}))}
    report = put_together(source, found | {"pci": Outcome(value=pci.tree(source))})
    assert [(gpu.index, gpu.pci_bus_id) for gpu in report.gpus] == [(0, "0000:03:00.0"), (1, "0000:81:00.0")]
    assert report.gpus_without_driver == ["0000:04:00.0", "0000:91:00.0"]
    assert "2 NVIDIA GPUs on the bus are not shown by the driver" in report.notes[0]


def test_a_probe_that_failed_leaves_null_facts_with_its_reason_and_the_rest_stands(tmp_path):
    found = outcomes(hostname="box") | {"pci": Outcome(problem="not back within 30 s")}
    report = put_together(LocalSource(tmp_path), found)
    assert report.hostname == "box"
    assert report.pci_devices is None
    assert report.sources["pci_devices"] == report.sources["iommu"] == "absent: not back within 30 s"


def test_nothing_at_all_is_an_incomplete_probe(tmp_path):
    with pytest.raises(ProbeIncomplete, match="no probe of the machine came back: hung"):
        put_together(LocalSource(tmp_path), {name: Outcome(problem="hung") for name in ("gpus", "pci")})
