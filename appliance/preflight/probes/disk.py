"""Read the checkpoint as a loader does, past the page cache: how long a start takes at the least."""

import mmap
import os
import threading
import time
from pathlib import Path

from appliance.preflight.probes.child import Teller, run
from appliance.preflight.probes.probe import LiveProbe

BLOCK = 16 * 2**20
SECONDS_EACH = 2.0
STREAMS = (1, 8)
ALIGNMENT = 4096
SUFFIXES = (".safetensors", ".bin", ".gguf")

PROBE = LiveProbe(
    name="disk",
    title="disk read of the checkpoint",
    module=__name__,
    limit_s=8,
    why_not=lambda subject: None if subject.model_path else "no checkpoint's folder is here (--model or --plan)",
    specify=lambda subject: {"folder": subject.model_path},
)


def main(spec: dict, teller: Teller) -> None:
    """Read with one stream and with eight, for two seconds each at the most."""
    folder = Path(spec["folder"])
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.stat().st_size)
    if not files:
        teller.problem(f"{folder}: no weight file to read")
        return
    total = sum(path.stat().st_size for path in files)
    teller.fact("checkpoint", f"{len(files)} files, {total} bytes")
    for streams in STREAMS:
        teller.doing(f"reading {files[0].name} with {streams} streams")
        count, seconds, direct = read(files, streams)
        teller.measure(f"sequential read, {streams} streams", count / seconds / 1e6, "MB/s")
        if streams == STREAMS[-1]:
            teller.fact("page cache", "passed by (O_DIRECT)" if direct else "dropped first (posix_fadvise)")
            teller.measure("whole checkpoint at this rate", total / (count / seconds), "s", better="lower")


def read(files: list[Path], streams: int) -> tuple[int, float, bool]:
    """(bytes, seconds, whether the page cache was passed by) of `streams` threads that read disjoint blocks."""
    deadline = time.monotonic() + SECONDS_EACH
    counts = [0] * streams
    direct = [True] * streams

    def work(number: int) -> None:
        buffer = mmap.mmap(-1, BLOCK)
        for path in files:
            descriptor, direct[number] = open_past_cache(path)
            try:
                size = path.stat().st_size
                for offset in range(number * BLOCK, size, streams * BLOCK):
                    if time.monotonic() >= deadline:
                        return
                    counts[number] += os.preadv(descriptor, [buffer], offset)
                    if not direct[number]:
                        os.posix_fadvise(descriptor, offset, BLOCK, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)

    begun = time.monotonic()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), max(time.monotonic() - begun, 1e-6), all(direct)


def open_past_cache(path: Path) -> tuple[int, bool]:
    """(descriptor, True) with O_DIRECT; where the file system has none, with the file's pages dropped, and False."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        os.preadv(descriptor, [mmap.mmap(-1, ALIGNMENT)], 0)
        return descriptor, True
    except OSError:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return descriptor, False


if __name__ == "__main__":
    run(main)
