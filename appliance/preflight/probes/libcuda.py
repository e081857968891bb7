"""Which libcuda the dynamic linker finds for a worker, and whether it can be initialised."""

import ctypes
import re

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe, needs_gpu

PROBE = LiveProbe(
    name="libcuda",
    title="libcuda that resolves",
    module=__name__,
    limit_s=5,
    why_not=lambda subject: "the device is simulated" if subject.simulated is not None else needs_gpu(subject),
    specify=lambda subject: {},
    environment=lambda subject: subject.environment(next(iter(subject.workers()), None)),
    on_gpu=True,
)


def main(spec: dict, teller: Teller) -> None:
    """Load libcuda.so.1 by its name, as every engine does, and ask it."""
    teller.doing("loading libcuda.so.1")
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        teller.problem(f"libcuda.so.1 does not resolve: {error}")
        return
    with open("/proc/self/maps") as maps:
        found = re.search(r"\s(/\S*libcuda\.so\S*)", maps.read())
    teller.fact("library", found[1] if found else "unknown")
    version = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(version)) == 0:
        teller.fact("CUDA of the driver", f"{version.value // 1000}.{version.value % 1000 // 10}")
    teller.doing("cuInit")
    code = library.cuInit(0)
    name = ctypes.c_char_p()
    library.cuGetErrorName(code, ctypes.byref(name))
    teller.fact("cuInit", (name.value or b"").decode() or str(code))
    devices = ctypes.c_int()
    if code == 0 and library.cuDeviceGetCount(ctypes.byref(devices)) == 0:
        teller.measure("devices", devices.value, "count")
    elif code != 0:
        teller.problem(f"cuInit: {(name.value or b'').decode() or code}")


if __name__ == "__main__":
    run(main)
