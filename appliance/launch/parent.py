"""Tie a process to the life of the one that started it (Linux)."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


def die_with_parent(parent: int) -> bool:
    """Have the kernel kill this process when its parent ends; survives an exec.

    False where `parent` (a pid) is not the parent any more: it ended before this took effect.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent
