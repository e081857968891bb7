"""How fast some CPUs copy within the memory of a NUMA node."""

import ctypes
import mmap
import os
import threading
import time

from appliance.launch.numa import bind_memory

BUFFER = 64 * 2**20
"""More than any cache of one core's share; two of them a thread."""
SECONDS_EACH = 0.4
MOST_THREADS = 16


def copy_rate(mine: set[int], memory: int | None) -> float:
    """Bytes read and written a second by copies in the memory of node `memory`, by threads on the CPUs `mine`.

    Affinity and memory policy belong to a thread (sched_setaffinity(2), set_mempolicy(2)): each sets its own before it
    touches its buffers. Raises OSError where the kernel refuses.
    """
    libc = ctypes.CDLL(None)
    libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    count = min(MOST_THREADS, len(mine))
    barrier = threading.Barrier(count)
    copied, failures = [0] * count, []
    deadline = [0.0]

    def work(number: int) -> None:
        try:
            os.sched_setaffinity(0, mine)
            if memory is not None:
                bind_memory(memory)
            source, target = (mmap.mmap(-1, BUFFER) for _ in range(2))
            a, b = (ctypes.addressof(ctypes.c_char.from_buffer(part)) for part in (source, target))
            ctypes.memset(a, 1, BUFFER), ctypes.memset(b, 0, BUFFER)
            if barrier.wait() == 0:
                deadline[0] = time.monotonic() + SECONDS_EACH
            barrier.wait()
            while time.monotonic() < deadline[0]:
                libc.memcpy(b, a, BUFFER)  # ctypes lets other threads run meanwhile
                copied[number] += 2 * BUFFER
        except OSError as error:
            failures.append(error)
            barrier.abort()
        except threading.BrokenBarrierError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    elapsed = time.monotonic() - (deadline[0] - SECONDS_EACH)
    return sum(copied) / elapsed
