"""What the machine code says without a GPU: registers, spills, shared memory, occupancy, mma instructions.

usage: sass_table.py LIBRARY [CUOBJDUMP] prints the table as JSON, one entry for each architecture and kernel.
"""

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

# CUDA C++ Programming Guide, technical specifications: shared memory and warps of a multiprocessor.
MULTIPROCESSOR = {"sm_90a": (228 * 1024, 64), "sm_120a": (100 * 1024, 48)}
REGISTERS, RESERVED_SHARED = 64 * 1024, 1024
COUNTED = ("HMMA", "MOVM", "LDGSTS", "LDL", "STL")
HEADS = re.compile(r"sparse_mla_decode_kernelI\w+?LayoutLi(\d+)E")


def occupancy(arch: str, registers: int, threads: int, shared: int) -> float:
    """Share of the warps of a multiprocessor that fit; registers are given out by 8 a thread."""
    capacity, warps = MULTIPROCESSOR[arch]
    blocks = min(
        REGISTERS // (-(-registers // 8) * 8 * threads), capacity // (shared + RESERVED_SHARED), warps * 32 // threads
    )
    return round(blocks * threads / 32 / warps, 3)


def table(library: Path, cuobjdump: str) -> dict:
    def block(heads: int) -> tuple[int, int]:
        threads, shared = ctypes.c_int(), ctypes.c_int()
        interface = ctypes.CDLL(str(library))
        interface.appliance_sparse_mla_decode_block(heads, ctypes.byref(threads), ctypes.byref(shared))
        return threads.value, shared.value

    def dump(*options):
        return subprocess.run([cuobjdump, *options, library], capture_output=True, text=True, check=True).stdout

    result = {}
    for arch in sorted(set(re.findall(r"sm_\d+a?", dump("--list-elf")))):
        usage = dict(re.findall(r"Function (\S+):\s*(.*)", dump("--dump-resource-usage", "--gpu-architecture", arch)))
        for body in dump("--dump-sass", "--gpu-architecture", arch).split("Function : ")[1:]:
            name = body.split()[0]
            heads = int(HEADS.search(name)[1])
            registers, stack = (int(re.search(key + r":(\d+)", usage[name])[1]) for key in ("REG", "STACK"))
            threads, shared = block(heads)
            opcodes = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)", body, re.M)
            result[f"{arch} sparse_mla_decode heads={heads}"] = {
                "registers": registers, "stack_bytes": stack, "shared_bytes": shared,
                "occupancy": occupancy(arch, registers, threads, shared),
                **{code: opcodes.count(code) for code in COUNTED},
            }  # fmt: skip
    return result


if __name__ == "__main__":
    found = table(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "cuobjdump")
    print(json.dumps(found, indent=1))
