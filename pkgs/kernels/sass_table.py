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
COUNTED = ("HMMA", "QMMA", "MOVM", "LDGSTS", "LDL", "STL")
SINGLE = ("indexer_logits", "indexer_topk")  # kernels of one configuration
MLA_HEADS = re.compile(r"(sparse_mla_(?:decode|prefill))_kernelI\w+?LayoutLi(\d+)E")


def occupancy(arch: str, registers: int, threads: int, shared: int) -> float:
    """Share of the warps of a multiprocessor that fit; registers are given out by 8 a thread."""
    capacity, warps = MULTIPROCESSOR[arch]
    blocks = min(
        REGISTERS // (-(-registers // 8) * 8 * threads), capacity // (shared + RESERVED_SHARED), warps * 32 // threads
    )
    return round(blocks * threads / 32 / warps, 3)


def table(library: Path, cuobjdump: str) -> dict:
    interface = ctypes.CDLL(str(library))

    def named_block(symbol: str) -> tuple[str, int, int]:
        """A kernel's name in the table, the threads of its block and their shared memory, from its symbol."""
        threads, shared = ctypes.c_int(), ctypes.c_int()
        sizes = ctypes.byref(threads), ctypes.byref(shared)
        if mla := MLA_HEADS.search(symbol):
            name = f"{mla[1]} heads={mla[2]}"
            interface[f"appliance_{mla[1]}_block"](int(mla[2]), *sizes)
        else:
            [name] = [name for name in SINGLE if f"{name}_kernel" in symbol]
            interface[f"appliance_{name}_block"](*sizes)
        return name, threads.value, shared.value

    def dump(*options):
        return subprocess.run([cuobjdump, *options, library], capture_output=True, text=True, check=True).stdout

    result = {}
    for arch in sorted(set(re.findall(r"sm_\d+a?", dump("--list-elf")))):
        usage = dict(re.findall(r"Function (\S+):\s*(.*)", dump("--dump-resource-usage", "--gpu-architecture", arch)))
        for body in dump("--dump-sass", "--gpu-architecture", arch).split("Function : ")[1:]:
            symbol = body.split()[0]
            name, threads, shared = named_block(symbol)
            registers, stack = (int(re.search(key + r":(\d+)", usage[symbol])[1]) for key in ("REG", "STACK"))
            opcodes = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)", body, re.M)
            result[f"{arch} {name}"] = {
                "registers": registers, "stack_bytes": stack, "shared_bytes": shared,
                "occupancy": occupancy(arch, registers, threads, shared),
                **{code: opcodes.count(code) for code in COUNTED},
            }  # fmt: skip
    return result


if __name__ == "__main__":
    found = table(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "cuobjdump")
    print(json.dumps(found, indent=1))
