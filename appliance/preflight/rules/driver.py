"""The driver, its modules and its services."""

from appliance.preflight.conditions import GPUS, SEVERAL_GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import gpu_links, is_nvlink, release, sm_120
from appliance.preflight.rule import rule

DENIED = {
    (580, 126, 20): "halts in the GPU's firmware under sustained load (NVIDIA/open-gpu-kernel-modules#1111)",
}
"""Drivers with a public report of silent hangs on sm_120, each with its reference."""
FIRST_FOR_SM_120 = (570,)


@rule(
    "driver-denied",
    "A driver with known silent hangs",
    "warning",
    needs=["machine.driver"],
    only_if=[GPUS],
    fix="hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.mkDriver { version = ...; };",
    reference="NVIDIA/open-gpu-kernel-modules#1111, #1159",
)
def driver_denied(facts: Facts):
    """The GPU stops answering under load (Xid 8, GSP time-out), and only a power cycle brings it back."""
    version = release(facts.machine.driver)
    if sm_120(facts.machine) and version in DENIED:
        yield f"driver {facts.machine.driver}: {DENIED[version]}"


@rule(
    "driver-too-old",
    "The driver is older than the GPU",
    "error",
    needs=["machine.driver"],
    only_if=[GPUS],
    fix="install a driver of branch 570 or later (580 for CUDA 13)",
    reference="NVIDIA, CUDA Toolkit release notes: minimum driver versions",
)
def driver_too_old(facts: Facts):
    """A driver that does not know the GPU does not show it, or shows it and fails at the first context."""
    version = release(facts.machine.driver)
    new = sm_120(facts.machine)
    if new and version and version < FIRST_FOR_SM_120:
        yield f"driver {facts.machine.driver}; {new[0].name or 'sm_120'} needs 570 or later"


@rule(
    "driver-of-windows",
    "The GPUs are a Windows host's (WSL)",
    "warning",
    needs=["machine.kernel|machine.processor.hypervisor"],
    only_if=[GPUS],
    fix="boot Linux on the machine itself",
    reference="NVIDIA, CUDA on WSL user guide: known limitations",
)
def driver_of_windows(facts: Facts):
    """No CUDA IPC, no pinned memory beyond a limit, no NUMA facts: prefill/decode transfer cannot work there."""
    kernel, guest = facts.machine.kernel or "", facts.machine.processor.hypervisor or ""
    if "microsoft" in kernel.lower() or "microsoft" in guest.lower():
        yield f"kernel {kernel or 'unknown'}, hypervisor {guest or 'unknown'}"


@rule(
    "uvm-not-loaded",
    "The module nvidia_uvm is not loaded",
    "error",
    needs=["machine.kernel_settings.modules"],
    only_if=[GPUS],
    fix='boot.kernelModules = [ "nvidia_uvm" ];  (now: modprobe nvidia_uvm)',
    reference="NixOS/nixpkgs#331069, NixOS/nixpkgs#333123",
)
def uvm_not_loaded(facts: Facts):
    """A hardened service cannot load it: CUDA reports no device although nvidia-smi shows all of them."""
    names = {module.name for module in facts.machine.kernel_settings.modules}
    if "nvidia" in names and "nvidia_uvm" not in names:
        yield f"loaded: {', '.join(sorted(names))}"


@rule(
    "uvm-hmm-on",
    "Unified memory mirrors the processes' own (HMM)",
    "warning",
    needs=["machine.kernel_settings.modules"],
    only_if=[GPUS],
    fix='boot.extraModprobeConfig = "options nvidia_uvm uvm_disable_hmm=1";',
    reference="local-inference-lab/rtx6kpro, host settings",
)
def uvm_hmm_on(facts: Facts):
    """The driver then follows every change of the process's page tables (MMU notifiers), and has been seen to stall."""
    for module in facts.machine.kernel_settings.modules:
        parameters = module.parameters or {}
        if module.name == "nvidia_uvm" and parameters.get("uvm_disable_hmm") in ("N", "0"):
            yield f"nvidia_uvm: uvm_disable_hmm={parameters['uvm_disable_hmm']}"


@rule(
    "fabric-manager",
    "The fabric manager of an NVSwitch machine is down or of another version",
    "error",
    needs=["machine.links", "machine.services|machine.software.fabric_manager"],
    only_if=[SEVERAL_GPUS],
    fix="hardware.nvidia.datacenter.enable = true;  (systemctl start nvidia-fabricmanager, of the driver's version)",
    reference="gpustack/gpustack#1254; NVIDIA, Fabric Manager user guide",
)
def fabric_manager(facts: Facts):
    """CUDA fails with error 802 (system not yet initialized) on every GPU, although nvidia-smi is fine."""
    pairs = gpu_links(facts.machine).values()
    if len(facts.machine.gpus) < 8 or not pairs or not all(is_nvlink(kind) for kind in pairs):
        return
    manager, driver = facts.machine.software.fabric_manager, facts.machine.driver
    if manager and driver and manager != driver:
        yield f"fabric manager {manager}, driver {driver}"
    services = facts.machine.services or []
    state = next((service for service in services if service.name == "nvidia-fabricmanager.service"), None)
    if state and state.active != "active":
        yield f"nvidia-fabricmanager.service is {state.active} ({state.sub})"
