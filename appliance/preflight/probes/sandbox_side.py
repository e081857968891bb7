"""One side of the sandbox probe, as it runs in a worker's unit: it offers memory, or takes what the other offers."""

import base64
import ctypes
import json
import os
import sys
from pathlib import Path

SIZE = 1 << 16
GPU_SIZE = 2 << 20
BYTE = 0xC3
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)


def offer() -> None:
    """Put bytes into a shared segment, into this process's memory, and on a GPU; tell where, until stdin ends."""
    told = json.loads(sys.stdin.readline())
    segment = Path(told["segment"])
    buffer = ctypes.create_string_buffer(bytes([BYTE]) * SIZE)
    # who may read another's memory is up to Yama where it runs (ptrace_scope): UCX asks for the same
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    offer = {"pid": os.getpid(), "address": ctypes.addressof(buffer), "segment": str(segment), "cuda": None}
    try:
        segment.write_bytes(bytes([BYTE]) * SIZE)
        segment.chmod(0o600)
        if told["cuda"]:
            offer["cuda"] = offered_on_gpu()
        print(json.dumps(offer), flush=True)
        sys.stdin.read()
    finally:
        segment.unlink(missing_ok=True)


def offered_on_gpu() -> dict:
    """A handle of memory on this side's first GPU, or what CUDA says against it."""
    from appliance.preflight.gpu.device import device

    try:
        gpus = device(None)
        buffer = gpus.allocate(0, GPU_SIZE)
        gpus.fill(buffer, BYTE)
        return {"handle": base64.b64encode(gpus.export(buffer)).decode()}
    except RuntimeError as error:
        return {"problem": str(error)}


def take() -> None:
    """Look at all that was offered, and tell what could be read."""
    offer = json.loads(sys.stdin.readline())
    taken = {"shared memory": attempt(lambda: Path(offer["segment"]).read_bytes() == bytes([BYTE]) * SIZE)}
    taken["process_vm_readv"] = attempt(lambda: read_of(offer["pid"], offer["address"]) == bytes([BYTE]) * SIZE)
    if offer["cuda"] is not None:
        taken["CUDA IPC"] = attempt(lambda: taken_on_gpu(offer["cuda"]))
    print(json.dumps({"taken": taken}), flush=True)
    sys.stdin.read()


def attempt(look) -> tuple[bool, str]:
    """Whether it could be read and was right, and in words."""
    try:
        return (True, "read") if look() else (False, "read, and wrong")
    except (OSError, RuntimeError) as error:
        return False, str(error)


def read_of(pid: int, address: int) -> bytes:
    """Another process's memory by process_vm_readv(2). Raises OSError."""

    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    buffer = ctypes.create_string_buffer(SIZE)
    mine, theirs = Piece(ctypes.addressof(buffer), SIZE), Piece(address, SIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    read = libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
    if read != SIZE:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw


def taken_on_gpu(offer: dict) -> bool:
    """Whether the other side's GPU memory can be opened and holds what it put there. Raises RuntimeError."""
    from appliance.preflight.gpu.device import device

    if "problem" in offer:
        raise RuntimeError(offer["problem"])
    gpus = device(None)
    opened = gpus.open(0, base64.b64decode(offer["handle"]), GPU_SIZE)
    return gpus.holds(opened, BYTE)


if __name__ == "__main__":
    {"offer": offer, "take": take}[sys.argv[1]]()
