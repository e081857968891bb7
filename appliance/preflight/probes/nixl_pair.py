"""NIXL between two processes, written and read, with the backend and the transports that were really used.

The measuring process starts the other one and talks to it over its pipes. No torch: memory is a mapping, or CUDA's.
"""

import base64
import json
import mmap
import os
import subprocess
import sys
import time

from appliance.preflight.gpu.device import Buffer, device
from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.ucx_tables import carriers

MODULE = "appliance.preflight.probes.nixl_pair"
SIZE = 64 * 2**20
SECONDS_EACH = 1.0
BYTE = 0x5A
NOTICE = b"written"
WAIT_S = 0.00002
AT_ONCE = 8
"""Writes for which the other side is asked once whether they came: DONE is only said of this side's buffer."""


class Side:
    """One agent with one registered buffer, in main memory or on a GPU."""

    def __init__(self, name: str, memory: str, gpu: int, backend: str, node: int | None):
        if node is not None:
            bind(node)
        if memory == "VRAM":
            self.gpus = device(None)
            self.buffer = self.gpus.allocate(gpu, SIZE)
        else:
            self.gpus = None
            self.mapping = mmap.mmap(-1, SIZE)
            self.buffer = Buffer(0, address_of(self.mapping), SIZE)
        from nixl import _api as api

        self.agent = api.nixl_agent(name, api.nixl_agent_config(backends=[backend]))
        self.memory = memory
        self.place = (self.buffer.address, SIZE, gpu if memory == "VRAM" else 0)
        self.registered = self.agent.register_memory([(*self.place, "")], memory)

    def fill(self, byte: int) -> None:
        """Set every byte of the buffer."""
        if self.gpus:
            self.gpus.fill(self.buffer, byte)
        else:
            self.mapping[:] = bytes([byte]) * SIZE

    def holds(self, byte: int) -> bool:
        """Whether the buffer's ends hold `byte`."""
        if self.gpus:
            return self.gpus.holds(self.buffer, byte)
        return self.mapping[:4096] + self.mapping[-4096:] == bytes([byte]) * 8192


def main(spec: dict, teller: Teller) -> None:
    """Measure WRITE to and READ from another process. What UCX says about its choice is caught on the way."""
    said = catch_standard_error()
    backend, memory = spec["backend"], spec["memory"]
    teller.doing("making the agents")
    peer = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", MODULE, "peer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=spec["peer_environment"],
        text=True,
    )
    ask(peer, {"memory": memory, "gpu": spec["their_gpu"], "backend": backend, "node": spec["their_node"]}, wait=False)
    side = Side("appliance-a", memory, spec["my_gpu"], backend, spec["my_node"])
    hello = answer(peer)
    remote = side.agent.add_remote_agent(base64.b64decode(hello["metadata"]))
    remote = remote.decode() if isinstance(remote, bytes) else remote
    mine = side.agent.get_xfer_descs([side.place], memory)
    theirs = side.agent.get_xfer_descs([tuple(hello["place"])], memory)
    for operation in ("WRITE", "READ"):
        teller.doing(f"{operation} of {memory} by {backend}")
        side.fill(BYTE if operation == "WRITE" else 0)
        ask(peer, {"fill": 0 if operation == "WRITE" else BYTE})
        notice = NOTICE if operation == "WRITE" else b""
        handle = side.agent.initialize_xfer(operation, mine, theirs, remote, notice)
        came = (lambda count: ask(peer, {"await": count})) if operation == "WRITE" else (lambda count: None)
        rate = transfer_rate(side.agent, handle, came)
        arrived = ask(peer, {"holds": BYTE})["holds"] if operation == "WRITE" else side.holds(BYTE)
        if not arrived:
            teller.problem(f"{operation}: the bytes that arrived are not those that were sent")
        teller.measure(f"{memory} {operation}", rate / 1e9, "GB/s")
        teller.fact("backend", side.agent.query_xfer_backend(handle))
        side.agent.release_xfer_handle(handle)
    peer.stdin.close()
    peer.wait(5)
    for operation, carrier in carriers(said()).items():
        teller.fact(f"{operation} is carried by", carrier)


def transfer_rate(agent, handle, came) -> float:
    """Bytes a second, by transfers one after the other for a second; the first, which connects, does not count.

    `came` waits until so many more have come to the other side. Without it a write over sockets looked like 667 GB/s.
    """
    complete(agent, handle)
    came(1)
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < SECONDS_EACH:
        for _ in range(AT_ONCE):
            complete(agent, handle)
        came(AT_ONCE)
        count += AT_ONCE
    return count * SIZE / (time.monotonic() - begun)


def complete(agent, handle) -> None:
    """Do one transfer to its end. Raises RuntimeError where NIXL says that it failed."""
    state = agent.transfer(handle)
    while state == "PROC":
        time.sleep(WAIT_S)
        state = agent.check_xfer_state(handle)
    if state != "DONE":
        raise RuntimeError(f"NIXL: the transfer ended as {state}")


def serve_peer() -> None:
    """The other process: make an agent, tell its metadata, do as told until standard input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    told = json.loads(sys.stdin.readline())
    try:
        side = Side("appliance-b", told["memory"], told["gpu"], told["backend"], told["node"])
    except Exception as error:
        out.write(json.dumps({"problem": f"{type(error).__name__}: {error}"[:300]}) + "\n")
        os._exit(1)
    metadata = base64.b64encode(side.agent.get_agent_metadata()).decode()
    out.write(json.dumps({"metadata": metadata, "place": side.place}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        if "fill" in order:
            side.fill(order["fill"])
        if "await" in order:
            wait_for_notices(side.agent, order["await"])
        out.write(json.dumps({"holds": side.holds(order["holds"])} if "holds" in order else {}) + "\n")
    os._exit(0)


def wait_for_notices(agent, count: int) -> None:
    """Wait until `count` more notices have come: NIXL sends a transfer's notice after its bytes."""
    while count > 0:
        notices = sum(len(texts) for texts in agent.get_new_notifs().values())
        count -= notices
        if not notices:
            time.sleep(WAIT_S)


def ask(peer: subprocess.Popen, order: dict, wait: bool = True) -> dict:
    """Give the other process an order, and wait for its answer."""
    peer.stdin.write(json.dumps(order) + "\n")
    peer.stdin.flush()
    return answer(peer) if wait else {}


def answer(peer: subprocess.Popen) -> dict:
    """The next answer. Raises RuntimeError where the process ended or could not do it."""
    line = peer.stdout.readline()
    data = json.loads(line) if line else {"problem": "the other process ended"}
    if "problem" in data:
        raise RuntimeError(data["problem"])
    return data


def catch_standard_error():
    """Send standard error of this process to memory; the function that is returned gives what came."""
    caught = os.memfd_create("stderr")
    os.dup2(caught, 2)
    os.dup2(caught, 1)

    def said() -> str:
        return os.pread(caught, 2**20, 0).decode(errors="replace")

    return said


def bind(node: int) -> None:
    """Bind to a NUMA node as the launcher does; where the kernel refuses, measure without."""
    from appliance.errors import InputError
    from appliance.launch import numa

    try:
        numa.bind(node)
    except InputError as error:
        print(error, file=sys.stderr)


def address_of(mapping: mmap.mmap) -> int:
    """Where a mapping lies."""
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


if __name__ == "__main__":
    serve_peer() if sys.argv[1:] == ["peer"] else run(main)
