import pytest

from appliance.recon.machine.probes import host, nics
from appliance.recon.machine.source import LocalSource
from tests.helpers.machine_files import two_sockets, write


@pytest.fixture
def source(tmp_path) -> LocalSource:
    return LocalSource(two_sockets(tmp_path))


def test_the_kernels_settings(source):
    settings = host.kernel(source).facts["kernel_settings"]
    assert settings.cmdline == "root=/dev/sda1 iommu=pt"
    assert [(m.name, m.version, m.parameters) for m in settings.modules] == [
        ("nvidia_uvm", "580.95.05", {"uvm_disable_hmm": "Y"})
    ]
    assert settings.nvidia_parameters == {"RegistryDwords": '"ForceP2P=0x11"', "EnableMSI": "1"}


def test_what_a_process_may_use(source):
    facts = host.processors(source).facts
    assert (facts["cpus_allowed"], facts["memory_nodes_allowed"]) == ("0-63", "0-1")
    assert facts["processor"].family == 26


def test_a_guest_is_called_one(tmp_path):
    write(tmp_path, {"proc/cpuinfo": "flags\t: fpu hypervisor", "sys/class/dmi/id/sys_vendor": "QEMU"})
    assert host.processors(LocalSource(tmp_path)).facts["processor"].hypervisor == "QEMU"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05"),
        ("NVRM version: none 1.2.3", None),
        (None, None),
    ],
)
def test_driver_version(text, expected):
    assert host.driver_version(text) == expected


@pytest.mark.parametrize("text, expected", [("0-3,8", 5), ("0", 1), ("", None), ("x", None), (None, None)])
def test_count_of_cpus(text, expected):
    assert host.count(text) == expected


def test_an_adapter_joins_its_rdma_device_and_its_interface(source):
    (nic,) = nics.adapters(source).facts["nics"]
    assert (nic.name, nic.device, nic.interface, nic.pci_bus_id) == ("NIC0", "mlx5_0", "ib0", "0000:05:00.0")
    assert (nic.state, nic.speed_gbps, nic.link_layer, nic.numa_node) == ("ACTIVE", 400, "InfiniBand", 0)
    assert nic.pcie.max_gen == 5
