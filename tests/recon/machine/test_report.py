import os
from pathlib import Path

import pytest

from appliance.recon.machine import driver_version, generation, machine_report


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def pci_device(address: str, **changes) -> dict[str, str]:
    values = {
        "vendor": "0x10de",
        "class": "0x030200",
        "numa_node": "0",
        "local_cpulist": "0-31",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }
    return {f"sys/bus/pci/devices/{address}/{name}": value for name, value in (values | changes).items()}


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


def test_this_machine():
    report = machine_report()
    assert report.kernel == os.uname().release
    assert report.memory_mib > 0


@pytest.mark.parametrize("text, expected", [("16.0 GT/s PCIe", 4), ("8.0 GT/s", 3), ("Unknown", None), (None, None)])
def test_generation(text, expected):
    assert generation(text) == expected


def test_a_driver_file_without_a_version(tmp_path):
    write(tmp_path, {"proc/driver/nvidia/version": "NVRM version: none"})
    assert driver_version(tmp_path) is None
