"""Run as a program: prints what NVML knows of every GPU as one JSON object. Imports nothing of this package.

A value that the GPU does not support is left out. Errors go into "error", so that the parent can say them.
"""

import json
import sys

MIB = 2**20
# nvmlClocksEventReason*: idle, application clocks, sync boost and display clocks are no reasons to worry
REASONS = {
    0x4: "SW Power Cap",
    0x8: "HW Slowdown",
    0x20: "SW Thermal Slowdown",
    0x40: "HW Thermal Slowdown",
    0x80: "HW Power Brake Slowdown",
}


def main() -> None:
    """Print the facts, or why there are none."""
    try:
        import pynvml as nvml
    except ImportError:
        print(json.dumps({"error": "nvidia-ml-py is not installed"}))
        return
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        print(json.dumps({"error": str(error)}))
        return
    data = {"gpus": {}, "versions": versions(nvml), "notes": []}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            data["gpus"][index] = facts_of(nvml, nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError as error:
            data["notes"].append(f"GPU {index}: NVML: {error}")
    json.dump(data, sys.stdout)


def versions(nvml) -> dict:
    """The driver's version and the newest CUDA that it serves."""
    found = {}
    driver = ask(nvml, lambda: nvml.nvmlSystemGetDriverVersion())
    cuda = ask(nvml, lambda: nvml.nvmlSystemGetCudaDriverVersion_v2())
    if driver is not None:
        found["driver"] = text(driver)
    if cuda is not None:
        found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    return found


def facts_of(nvml, gpu) -> dict:
    """The facts of one GPU, by field of the report's Gpu."""
    pci = ask(nvml, lambda: nvml.nvmlDeviceGetPciInfo(gpu))
    memory = ask(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(gpu))
    bar1 = ask(nvml, lambda: nvml.nvmlDeviceGetBAR1MemoryInfo(gpu))
    capability = ask(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(gpu))
    reasons = ask(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
    mig = ask(nvml, lambda: nvml.nvmlDeviceGetMigMode(gpu))
    name = ask(nvml, lambda: nvml.nvmlDeviceGetName(gpu))
    uuid = ask(nvml, lambda: nvml.nvmlDeviceGetUUID(gpu))
    link = {
        "gen": ask(nvml, lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
        "width": ask(nvml, lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
        "max_gen": ask(nvml, lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu)),
        "max_width": ask(nvml, lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)),
    }
    found = {
        "pci_bus_id": None if pci is None else address(text(pci.busId)),
        "name": None if name is None else text(name),
        "uuid": None if uuid is None else text(uuid),
        "minor": ask(nvml, lambda: nvml.nvmlDeviceGetMinorNumber(gpu)),
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "memory_mib": None if memory is None else memory.total // MIB,
        "memory_used_mib": None if memory is None else memory.used // MIB,
        "bar1_mib": None if bar1 is None else bar1.bar1Total // MIB,
        "pcie": {key: value for key, value in link.items() if value},
        "power_limit_w": watts(ask(nvml, lambda: nvml.nvmlDeviceGetPowerManagementLimit(gpu))),
        "power_limit_default_w": watts(ask(nvml, lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu))),
        "power_draw_w": watts(ask(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(gpu))),
        "temperature_c": ask(nvml, lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
        "throttle_reasons": None if reasons is None else [word for bit, word in REASONS.items() if reasons & bit],
        "mig_enabled": None if mig is None else bool(mig[0]),
        "mig_devices": mig_profiles(nvml, gpu) if mig is not None and mig[0] else None,
        "processes": processes(nvml, gpu),
    }
    return {key: value for key, value in found.items() if value is not None}


def mig_profiles(nvml, gpu):
    """The profiles of a GPU's MIG devices, the last word of their names ("NVIDIA H200 MIG 1g.18gb")."""
    found = []
    for place in range(ask(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)) or 0):
        name = ask(
            nvml, lambda place=place: nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place))
        )
        if name is not None:
            found.append(text(name).split()[-1])
    return found


def processes(nvml, gpu):
    """The compute and graphics processes on a GPU; None where NVML does not tell."""
    found = {}
    for call in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        running = ask(nvml, lambda call=call: call(gpu))
        if running is None:
            continue
        for entry in running:
            used = entry.usedGpuMemory
            name = ask(nvml, lambda pid=entry.pid: nvml.nvmlSystemGetProcessName(pid))
            found[entry.pid] = {
                "pid": entry.pid,
                "name": None if name is None else text(name),
                "memory_mib": None if used is None else used // MIB,
            }
        found.setdefault(None, None)
    if None not in found:
        return None
    del found[None]
    return list(found.values())


def ask(nvml, call):
    """The value of an NVML call; None where the GPU or the library does not have it."""
    try:
        return call()
    except (nvml.NVMLError, AttributeError, UnicodeDecodeError):
        return None


def watts(milliwatts):
    """Milliwatts as watts; None stays None."""
    return None if milliwatts is None else milliwatts / 1000


def text(value) -> str:
    """Old versions of the library return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def address(bus_id: str) -> str:
    """NVML's "00000000:C1:00.0" as sysfs writes it."""
    domain, rest = bus_id.lower().split(":", 1)
    return f"{domain[-4:] if domain[:-4].strip('0') == '' else domain}:{rest}"


if __name__ == "__main__":
    main()
