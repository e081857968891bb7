"""The hardware module: what it sets, and its script against a stand-in for the PCI tools."""

import os
import subprocess

from tests.helpers.nix_module import PROJECT, evaluate

HARDWARE = f"{PROJECT}/nix/hardware/rtx-pro-6000.nix"
LSPCI = """\
#!/bin/sh
echo "0000:00:01.0 0604: 1022:1483"
echo "0000:40:00.0 0604: 1000:c030"
echo "0001:40:00.0 0604: 1000:c030"
echo "0000:01:00.0 0302: 10de:2bb1"
"""
SETPCI = """\
#!/bin/sh
# stand-in: bridge 0000:00:01.0 has no ACS; the registers of the others are files
[ "$2" = 0000:00:01.0 ] && exit 1
case $3 in
    ECAP_ACS+6.w=*) echo "${3#*=}" > "$REGISTERS/$2" ;;
    ECAP_ACS+6.w) cat "$REGISTERS/$2" ;;
    *) exit 2 ;;
esac
"""


def test_defaults_give_way_to_the_hosts_own():
    own = f'{{ imports = [ {HARDWARE} ]; powerManagement.cpuFreqGovernor = "schedutil"; }}'
    assert evaluate(f"{{ imports = [ {HARDWARE} ]; }}", "powerManagement") == {"cpuFreqGovernor": "performance"}
    assert evaluate(own, "powerManagement") == {"cpuFreqGovernor": "schedutil"}


def test_links_do_not_sleep_and_the_iommu_lets_pass():
    boot = evaluate(f"{{ imports = [ {HARDWARE} ]; }}", "boot")
    assert boot["kernelParams"] == ["iommu=pt", "pcie_aspm=off", "pcie_port_pm=off"]
    assert boot["kernel"]["sysctl"] == {"kernel.numa_balancing": 0}


def test_acs_is_cleared_on_every_bridge_that_has_it(tmp_path):
    for name, text in {"lspci": LSPCI, "setpci": SETPCI}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    registers = tmp_path / "registers"
    registers.mkdir()
    for bridge in ("0000:40:00.0", "0001:40:00.0"):
        (registers / bridge).write_text("001d\n")
    done = subprocess.run(
        ["bash", PROJECT / "nix/hardware/clear-acs.sh"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REGISTERS": str(registers)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "0000:40:00.0: ACS control 001d, now 0000",
        "0001:40:00.0: ACS control 001d, now 0000",
    ]
    assert (done.returncode, done.stderr) == (0, "")
