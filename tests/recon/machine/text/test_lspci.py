from appliance.recon.machine.text import lspci

TEXT = """00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Device 153d (rev 01)
\tBus: primary=00, secondary=01, subordinate=04, sec-latency=0
\tIOMMU group: 12
\tCapabilities: [58] Express (v2) Root Port (Slot+), IntMsgNum 0
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)
\tCapabilities: [2a0 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-

0001:02:00.0 3D controller [0302]: NVIDIA Corporation Device 2bb5 (rev a1)
\tNUMA node: 1
\tCapabilities: [48] Express (v2) Endpoint, IntMsgNum 0
"""


def test_links_groups_nodes_and_acs():
    bridge, gpu = lspci.parse(TEXT)
    assert (bridge.address, bridge.class_name, bridge.port) == ("0000:00:01.1", "PCI bridge", "Root Port")
    assert bridge.link == {"max_gen": 5, "max_width": 16, "gen": 1, "width": 8}
    assert (bridge.iommu_group, bridge.bus_range) == (12, (1, 4))
    assert bridge.acs.enabled == ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert (gpu.address, gpu.numa_node, gpu.port) == ("0001:02:00.0", 1, "Endpoint")


def test_other_text_lists_nothing():
    assert lspci.parse("12:30:45.1 said: something\n\tACSCtl: SrcValid+\n") == []
