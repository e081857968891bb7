from appliance.documents.machine import GpuProcess
from appliance.recon.machine.text import smi_query, smi_table

QUERY = """
==============NVSMI LOG==============
Driver Version                            : 580.95.05
CUDA Version                              : 13.0
Attached GPUs                             : 2
GPU 00000000:C1:00.0
    Product Name                          : NVIDIA RTX PRO 6000 Blackwell Server Edition
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    Minor Number                          : 3
    PCI
        Bus Id                            : 00000000:C1:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        Idle                              : Active
        SW Power Cap                      : Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    FB Memory Usage
        Total                             : 97887 MiB
        Used                              : 512 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 1 MiB
    Temperature
        GPU Current Temp                  : 61 C
        GPU T.Limit Temp                  : 20 C
    GPU Power Readings
        Average Power Draw                : 301.50 W
        Current Power Limit               : 400.00 W
        Default Power Limit               : 600.00 W
    GPU Memory Power Readings
        Average Power Draw                : N/A
    Module Power Readings
        Current Power Limit               : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4242
            Type                          : C
            Name                          : sglang::scheduler_TP0
            Used GPU Memory               : 500 MiB
    Capabilities
        EGM                               : disabled

GPU 00000001:C1:00.0
    Product Name                          : NVIDIA RTX PRO 6000 Blackwell Server Edition
    BAR1 Memory Usage
        Total                             : N/A
    Processes                             : None
user@box:~$ other --command
    Product Name                          : not a GPU
"""


def check(gpus: dict) -> None:
    first, second = gpus[0], gpus[1]
    assert (first["pci_bus_id"], second["pci_bus_id"]) == ("0000:c1:00.0", "0001:c1:00.0")
    assert first["pcie"] == {"max_gen": 5, "gen": 1, "max_width": 16, "width": 8}
    assert (first["memory_mib"], first["memory_used_mib"], first["bar1_mib"]) == (97887, 512, 131072)
    assert (first["power_limit_w"], first["power_limit_default_w"], first["power_draw_w"]) == (400, 600, 301.5)
    assert (first["temperature_c"], first["minor"], first["mig_enabled"]) == (61, 3, False)
    assert first["throttle_reasons"] == ["SW Power Cap", "HW Slowdown", "HW Thermal Slowdown"]
    assert first["processes"] == [GpuProcess(pid=4242, name="sglang::scheduler_TP0", memory_mib=500)]
    assert (second["bar1_mib"], second["processes"]) == (None, [])
    assert second["name"].startswith("NVIDIA RTX PRO")


def test_the_detailed_listing_with_and_without_its_indentation():
    for text in (QUERY, "\n".join(line.strip() for line in QUERY.split("\n"))):
        gpus, versions = smi_query.parse(text)
        assert len(gpus) == 2
        check(gpus)
        assert versions == {"driver": "580.95.05", "cuda": "13.0"}


def test_names_of_older_and_newer_drivers():
    text = """KMD Version : 610.1.1
CUDA UMD Version : 13.3
GPU 00000000:01:00.0
    Clocks Throttle Reasons
        HW Slowdown : Active
    Power Readings
        Power Limit : 250.00 W
        Power Draw : 30.00 W
"""
    gpus, versions = smi_query.parse(text)
    assert versions == {"driver": "610.1.1", "cuda": "13.3"}
    assert (gpus[0]["power_limit_w"], gpus[0]["throttle_reasons"]) == (250, ["HW Slowdown"])


TABLE = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA RTX PRO 6000 Blac...    On  |   00000000:06:00.0 Off |                    0 |
| N/A   28C    P0            181W /  600W |      12MiB /  97887MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    Off |   00000001:06:00.0 Off |                  N/A |
| N/A   40C    P0             N/A /  N/A  |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
"""


def test_the_table():
    gpus, versions = smi_table.parse_table(TABLE)
    assert versions == {"driver": "580.95.05", "cuda": "13.0"}
    assert gpus[0]["name"] is None  # cut by the table: no name at all
    assert gpus[1]["name"] == "NVIDIA H200"
    assert (gpus[0]["power_limit_w"], gpus[0]["memory_mib"], gpus[0]["temperature_c"]) == (600, 97887, 28)
    assert (gpus[1]["power_limit_w"], gpus[1]["pci_bus_id"], gpus[1]["mig_enabled"]) == (None, "0001:06:00.0", True)


def test_names_of_the_610_driver_in_the_table():
    line = "| NVIDIA-SMI 610.57.04              KMD Version: 610.57.04     CUDA UMD Version: 13.3     |"
    assert smi_table.parse_table(line)[1] == {"driver": "610.57.04", "cuda": "13.3"}


def test_the_list_with_mig_devices():
    text = """GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555555)
  MIG 1g.18gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)
  MIG 2g.35gb     Device  1: (UUID: MIG-11111111-2222-3333-4444-666666666666)
GPU 1,2: NVIDIA L40S
a log line about GPU 7: it is hot
"""
    gpus = smi_table.parse_list(text)
    assert gpus[0]["mig_devices"] == ["1g.18gb", "2g.35gb"]
    assert gpus[0]["uuid"] == "GPU-11111111-2222-3333-4444-555555555555"
    assert [gpus[1]["name"], gpus[2]["name"]] == ["NVIDIA L40S"] * 2
    assert sorted(gpus) == [0, 1, 2]


def test_comma_separated_values():
    text = """index, name, compute_cap, memory.total [MiB], power.limit [W], driver_version
0, NVIDIA H200, 9.0, 143771 MiB, 700.00 W, 580.95.05
1, NVIDIA H200, 9.0, [N/A], [Not Supported], 580.95.05
done, with, it
"""
    gpus, versions = smi_table.parse_csv(text)
    assert gpus[0] == {
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "memory_mib": 143771,
        "power_limit_w": 700,
    }
    assert (gpus[1]["memory_mib"], gpus[1]["power_limit_w"]) == (None, None)
    assert versions == {"driver": "580.95.05"}
