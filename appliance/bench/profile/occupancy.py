"""How many blocks of a kernel an SM holds at once: the rules of CUDA's occupancy calculator.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (blocks an SM, granularity of
registers and of shared memory); the GPU's own limits come from the trace. Thread block clusters are not in a trace and
not considered.
"""

from math import ceil

from appliance.documents import ProfiledGpu

WARP = 32
REGISTERS_AT_ONCE = 256
"""Registers are given to a warp in units of this many."""
QUARTERS = 4
"""Of an SM: a warp's registers lie in one of them."""
SHARED_AT_ONCE, SHARED_OF_SYSTEM = 128, 1024
"""Bytes: shared memory is given in such units, and the system takes as much of each block's (8.0 and newer)."""
BLOCKS_PER_SM = {
    "8.0": 32, "8.6": 16, "8.7": 16, "8.9": 24, "9.0": 32, "10.0": 32, "10.3": 32, "11.0": 24, "12.0": 24, "12.1": 24,
}  # fmt: skip


def blocks_per_sm(gpu: ProfiledGpu, threads: int, registers: int | None, shared_bytes: int | None) -> int | None:
    """Blocks of `threads` threads that an SM of `gpu` holds at once; None where the trace does not say enough.

    registers: of a thread; shared_bytes: static and dynamic, of a block. 0: such a block does not fit.
    """
    most = BLOCKS_PER_SM.get(gpu.compute_capability)
    limits = (gpu.threads_per_sm, gpu.registers_per_sm, gpu.shared_bytes_per_sm, registers, shared_bytes)
    if most is None or threads < 1 or None in limits:
        return None
    warps = ceil(threads / WARP)
    by_threads = gpu.threads_per_sm // (warps * WARP)
    per_warp = ceil(registers * WARP / REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    by_registers = gpu.registers_per_sm // QUARTERS // per_warp * QUARTERS // warps if per_warp else most
    shared = ceil(shared_bytes / SHARED_AT_ONCE) * SHARED_AT_ONCE + SHARED_OF_SYSTEM
    return min(most, by_threads, by_registers, gpu.shared_bytes_per_sm // shared)


def occupancy(gpu: ProfiledGpu, threads: int, resident: int | None) -> float | None:
    """Share of an SM's warps that `resident` blocks of `threads` threads fill: the theoretical occupancy."""
    if not resident or gpu.threads_per_sm is None:
        return None
    return min(1.0, resident * ceil(threads / WARP) * WARP / gpu.threads_per_sm)
