"""PCIe between GPUs: IOMMU, ACS, link width, errors, BAR1, peer access of boards without a switch."""

import re

from appliance.preflight.conditions import GPUS, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import bridges_above_gpus
from appliance.preflight.rule import Found, Undecided, rule

REDIRECTS = {"TransBlk", "ReqRedir", "CmpltRedir", "EgressCtrl"}
OFF = re.compile(r"(?:^|\s)(?:(?:amd_|intel_)?iommu=off|iommu=pt|iommu\.passthrough=1)(?:\s|$)")
ON = re.compile(r"(?:^|\s)(?:intel_iommu=on|amd_iommu=force_enable|iommu=force)(?:\s|$)")
MANY_CORRECTABLE = 1000
CLEAR_ACS = "setpci -s BRIDGE ECAP_ACS+6.w=0000, for each bridge, in a oneshot unit before the workers"
IOMMU_FIX = 'boot.kernelParams = [ "iommu=pt" ];  (or "amd_iommu=off" on a host without guests)'


@rule(
    "iommu-translates",
    "The IOMMU translates the GPUs' addresses",
    "warning",
    needs=["machine.iommu|machine.kernel_settings.cmdline"],
    only_if=[SEVERAL_GPUS],
    fix=IOMMU_FIX,
    reference="local-inference-lab/rtx6kpro#15, vllm-project/vllm#51513",
)
def iommu_translates(facts: Facts):
    """Peer traffic goes up to the root and through the IOMMU: slow at best, a hang in the first all-reduce at worst."""
    translated = translated_groups(facts)
    if translated:
        yield f"IOMMU groups of type DMA hold {', '.join(translated[:8])}"
    elif facts.machine.iommu is None:
        cmdline = facts.machine.kernel_settings.cmdline
        if ON.search(cmdline) and not OFF.search(cmdline):
            yield f"kernel command line: {ON.search(cmdline)[0].strip()}, without iommu=pt"
        elif not OFF.search(cmdline):
            raise Undecided("machine.iommu")
    elif facts.machine.iommu.enabled and not any(group.type for group in facts.machine.iommu.groups):
        raise Undecided("machine.iommu.groups[].type")


def translated_groups(facts: Facts) -> list[str]:
    """Addresses of GPUs in groups that the IOMMU translates."""
    addresses = {gpu.pci_bus_id for gpu in facts.machine.gpus}
    groups = facts.machine.iommu.groups if facts.machine.iommu else []
    return [
        name for group in groups if (group.type or "").startswith("DMA") for name in group.devices if name in addresses
    ]


def redirecting(facts: Facts) -> list[str]:
    """Bridges above GPUs that send peer traffic up. Raises Undecided where the report does not have their ACS."""
    bridges = bridges_above_gpus(facts.machine)
    found = [
        f"{bridge.address} ({bridge.kind.replace('_', ' ')}): {'+ '.join(sorted(REDIRECTS & set(bridge.acs.enabled)))}+"
        for bridge in bridges
        if bridge.acs and REDIRECTS & set(bridge.acs.enabled)
    ]
    unread = "pci_devices.acs" in facts.machine.sources or not any(bridge.acs for bridge in bridges)
    if not found and unread and bridges:
        raise Undecided("machine.pci_devices.acs")
    return found


@rule(
    "iommu-with-acs",
    "IOMMU and ACS together stop peer traffic",
    "error",
    needs=["machine.iommu.groups[].type", "machine.pci_devices"],
    only_if=[SEVERAL_GPUS],
    fix=f"{IOMMU_FIX}  and  {CLEAR_ACS}",
    reference="local-inference-lab/rtx6kpro#15",
)
def iommu_with_acs(facts: Facts):
    """Tensor parallelism hangs at its first all-reduce, with every GPU at 100 % and a fifth of its power."""
    translated = translated_groups(facts)
    if translated:
        bridges = redirecting(facts)
        if bridges:
            yield f"translated: {', '.join(translated[:8])}; redirected at {'; '.join(bridges[:4])}"


@rule(
    "acs-redirects-peers",
    "A bridge sends traffic between GPUs up to the root",
    "warning",
    needs=["machine.pci_devices"],
    only_if=[SEVERAL_GPUS],
    fix=CLEAR_ACS,
    reference="NVIDIA/nccl#1999, NVIDIA/nccl#2079",
)
def acs_redirects_peers(facts: Facts):
    """Peer bandwidth halves where a switch may not forward between its own ports. A note for root ports alone."""
    for line in redirecting(facts):
        yield Found(line, severity="note" if "(root port)" in line else None)


@rule(
    "pcie-link-narrow",
    "A GPU's PCIe link has lost lanes",
    "warning",
    needs=["machine.gpus[].pcie.width", "machine.gpus[].pcie.max_width"],
    only_if=[GPUS],
    fix="reseat card and riser, look at the slot's wiring and at bifurcation in the BIOS",
    reference="NVIDIA/open-gpu-kernel-modules#1151",
)
def pcie_link_narrow(facts: Facts):
    """Half of the lanes is half of every transfer; a link that trains narrow often goes down later (Xid 79)."""
    for gpu in facts.machine.gpus:
        if gpu.pcie.width and gpu.pcie.max_width and gpu.pcie.width < gpu.pcie.max_width:
            yield f"GPU {gpu.index} ({gpu.pci_bus_id}): x{gpu.pcie.width} of x{gpu.pcie.max_width}"


@rule(
    "pcie-errors",
    "PCIe errors have been counted",
    "warning",
    needs=["machine.pci_devices"],
    only_if=[GPUS],
    fix="journalctl -k -g AER; reseat the card or its riser, then pcie_aspm=off",
    reference="NVIDIA/open-gpu-kernel-modules#1151; kernel, Documentation/PCI/pcieaer-howto.rst",
)
def pcie_errors(facts: Facts):
    """Links that count errors are the ones that drop: the GPU falls off the bus in the middle of a run."""
    counted = [device for device in facts.machine.pci_devices if device.aer]
    if not counted:
        raise Undecided("machine.pci_devices[].aer")
    for device in counted:
        if device.aer.nonfatal or device.aer.fatal:
            counts = f"{device.aer.fatal or 0} fatal, {device.aer.nonfatal or 0} nonfatal"
            yield f"{device.address} ({device.kind}): {counts}"
        elif (device.aer.correctable or 0) >= MANY_CORRECTABLE:
            yield Found(f"{device.address} ({device.kind}): {device.aer.correctable} correctable", severity="note")


@rule(
    "pcie-power-saving",
    "PCIe power saving is left to the firmware",
    "note",
    needs=["machine.kernel_settings.cmdline"],
    only_if=[GPUS],
    fix='boot.kernelParams = [ "pcie_aspm=off" "pcie_port_pm=off" ];',
    reference="NVIDIA/open-gpu-kernel-modules#1151; local-inference-lab/rtx6kpro",
)
def pcie_power_saving(facts: Facts):
    """Links that go to sleep have been seen not to come back (Xid 79), and cost 14 us, not 0.4, a peer access."""
    words = facts.machine.kernel_settings.cmdline.split()
    lacking = [word for word in ("pcie_aspm=off", "pcie_port_pm=off") if word not in words]
    if lacking:
        yield f"kernel command line without {' and '.join(lacking)}"
