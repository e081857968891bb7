"""Bind this process to a NUMA node, CPUs and memory, before it allocates; what it execs inherits both.

set_mempolicy(2) is called directly: libnuma's numa_set_membind and numactl do nothing else, and neither is
on a fresh machine. The policy and the affinity survive execve(2) (man set_mempolicy, sched_setaffinity).
"""

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path

from appliance.cpu_list import as_text, parse
from appliance.errors import InputError

MPOL_BIND = 2  # include/uapi/linux/mempolicy.h
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}  # system call numbers
NODES = Path("/sys/devices/system/node")
LONG_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


def bind(node: int, nodes: Path = NODES) -> None:
    """Run on the CPUs of `node` that this process may use, and take memory from `node` only.

    The node's CPUs are intersected with the present affinity (a container's cpuset). Raises InputError where
    the node does not exist, has no usable CPU, or the kernel refuses; on a machine with one node a refusal to bind
    memory is only told, since all memory is that node's.
    """
    usable = usable_cpus(node, nodes)
    try:
        os.sched_setaffinity(0, usable)
        bind_memory(node)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS) and len(list(nodes.glob("node[0-9]*"))) == 1:
            print(f"NUMA node {node}: memory is not bound ({error.strerror}); it is the only node", file=sys.stderr)
            return
        hint = "; a container needs --cap-add SYS_NICE" if error.errno == errno.EPERM else ""
        raise InputError(f"NUMA node {node}: the kernel refuses the binding ({error.strerror}){hint}") from None


def usable_cpus(node: int, nodes: Path = NODES) -> set[int]:
    """The CPUs of `node` that this process may use. Raises InputError if the node is absent or there are none."""
    cpus = node_cpus(node, nodes)
    allowed = os.sched_getaffinity(0)
    usable = cpus & allowed
    if not usable:
        raise InputError(
            f"NUMA node {node} has no CPU that this process may use: "
            f"it has {as_text(cpus)}, allowed are {as_text(allowed)}"
        )
    return usable


def node_cpus(node: int, nodes: Path = NODES) -> set[int]:
    """The CPUs of `node`. Raises InputError, naming the nodes there are, where it does not exist."""
    try:
        return parse((nodes / f"node{node}/cpulist").read_text())
    except OSError:
        present = sorted(path.name.removeprefix("node") for path in nodes.glob("node[0-9]*"))
        raise InputError(f"NUMA node {node} does not exist; this machine has {', '.join(present) or 'none'}") from None


def bind_memory(node: int) -> None:
    """set_mempolicy(MPOL_BIND) to `node` for this thread and all that it starts. Raises OSError."""
    number = SET_MEMPOLICY.get(platform.machine())
    if number is None:
        raise OSError(0, f"memory binding is not known for {platform.machine()}")
    mask = (ctypes.c_ulong * (node // LONG_BITS + 1))()
    mask[node // LONG_BITS] = 1 << (node % LONG_BITS)
    libc = ctypes.CDLL(None, use_errno=True)
    # the kernel reads maxnode - 1 bits
    if libc.syscall(number, MPOL_BIND, mask, ctypes.c_ulong(len(mask) * LONG_BITS + 1)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
