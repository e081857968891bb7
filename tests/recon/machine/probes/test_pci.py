import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.recon.machine.probes import pci
from appliance.recon.machine.probes.kernel_text import generation, width
from appliance.recon.machine.source import LocalSource
from tests.helpers.machine_files import BRIDGE, DOWNSTREAM, GPU, bridge_config, place, two_sockets


@pytest.fixture
def devices(tmp_path) -> dict:
    tree = pci.tree(LocalSource(two_sockets(tmp_path)))
    return {device.address: device for device in tree.facts["pci_devices"]}


def test_bridges_above_gpus_are_in_the_tree_by_kind(devices):
    assert {address: device.kind for address, device in devices.items()} == {
        "0000:00:01.0": "root_port",
        "0000:01:00.0": "switch_upstream",
        "0000:02:00.0": "switch_downstream",
        "0000:02:01.0": "switch_downstream",
        "0000:02:02.0": "switch_downstream",
        "0000:03:00.0": "gpu",
        "0000:04:00.0": "gpu",
        "0000:05:00.0": "nic",
        "0000:80:01.0": "root_port",
        "0000:80:02.0": "root_port",
        "0000:81:00.0": "gpu",
        "0000:91:00.0": "gpu",
    }
    assert pci.ancestors(devices, "0000:03:00.0") == ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    assert devices["0000:81:00.0"].host_bridge == "pci0000:80"


def test_acs_is_read_from_the_extended_configuration_space(devices):
    assert devices["0000:00:01.0"].acs.enabled == ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert devices["0000:02:00.0"].acs.enabled == []
    assert "DirectTrans" in devices["0000:02:00.0"].acs.capable
    assert devices["0000:01:00.0"].acs is None  # upstream ports have none


def test_without_privilege_acs_is_absent_and_said_to_be(tmp_path):
    place(tmp_path, "pci0000:00/0000:00:01.0", BRIDGE, bridge_config(DOWNSTREAM, 0x1F)[:64])
    place(tmp_path, "pci0000:00/0000:00:01.0/0000:01:00.0", GPU)
    found = pci.tree(LocalSource(tmp_path))
    assert [device.kind for device in found.facts["pci_devices"]] == ["bridge", "gpu"]
    assert found.sources["pci_devices.acs"] == "absent: configuration space of 1 bridges needs root"


def test_iommu_groups_of_the_trees_devices(tmp_path):
    iommu = pci.tree(LocalSource(two_sockets(tmp_path))).facts["iommu"]
    assert [(group.id, group.type, group.devices) for group in iommu.groups] == [(7, "DMA-FQ", ["0000:03:00.0"])]


def test_links_through_two_switches_and_across_host_bridges(tmp_path):
    low = "pci0000:00/0000:00:01.0/0000:01:00.0"
    for number in (0, 1):
        mid = f"{low}/0000:02:0{number}.0/0000:1{number}:00.0/0000:2{number}:00.0"
        place(tmp_path, f"{mid}/0000:3{number}:00.0", GPU)
        for bridge in (f"{low}/0000:02:0{number}.0", mid.rsplit("/", 1)[0], mid):
            place(tmp_path, bridge, BRIDGE)
    place(tmp_path, low, BRIDGE)
    place(tmp_path, "pci0000:00/0000:00:01.0", BRIDGE)
    place(tmp_path, "pci0000:40/0000:41:00.0", GPU)
    place(tmp_path, "pci0000:60/0000:61:00.0", GPU, numa_node="-1")
    found = {device.address: device for device in pci.tree(LocalSource(tmp_path)).facts["pci_devices"]}
    assert pci.link_kind(found, "0000:30:00.0", "0000:31:00.0") == "PXB"
    assert pci.link_kind(found, "0000:30:00.0", "0000:41:00.0") == "NODE"
    assert pci.link_kind(found, "0000:30:00.0", "0000:61:00.0") is None  # its node is not known


@given(st.binary(max_size=64), st.integers(0, 4095))
def test_any_configuration_space_is_read_to_an_end(noise, at):
    config = bytearray(bridge_config(DOWNSTREAM, 0x1F, 0x1F))
    config[at : at + len(noise)] = noise
    pci.capabilities(bytes(config[:4096]))
    pci.capabilities(noise)


@pytest.mark.parametrize("text, expected", [("16.0 GT/s PCIe", 4), ("8.0 GT/s", 3), ("Unknown", None), (None, None)])
def test_generation(text, expected):
    assert generation(text) == expected


@pytest.mark.parametrize("text, expected", [("16", 16), ("0", None), ("255", None), ("x16", None), (None, None)])
def test_width(text, expected):
    assert width(text) == expected


def test_counted_errors_are_the_kernels_totals(tmp_path):
    place(tmp_path, "pci0000:00/0000:01:00.0", GPU)
    place(tmp_path, "pci0000:00/0000:02:00.0", GPU)
    folder = tmp_path / "sys/devices/pci0000:00/0000:01:00.0"
    (folder / "aer_dev_correctable").write_text("RxErr 2\nBadTLP 1\nTOTAL_ERR_COR 3\n")
    (folder / "aer_dev_nonfatal").write_text("Undefined 0\nTOTAL_ERR_NONFATAL 0\n")
    (folder / "aer_dev_fatal").write_text("nothing that is known")
    counted, uncounted = pci.tree(LocalSource(tmp_path)).facts["pci_devices"]
    assert (counted.aer.correctable, counted.aer.nonfatal, counted.aer.fatal) == (3, 0, None)
    assert uncounted.aer is None
