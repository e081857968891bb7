"""One run of the kernel package's benchmark, in a process of its own: this one stays without torch and CUDA."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from appliance.documents import KernelBench
from appliance.errors import InputError, ProbeIncomplete

PACKAGE = "appliance_kernels"
OPERATIONS = ["sparse_mla_decode", "sparse_mla_prefill", "indexer_logits", "indexer_topk"]
NOT_HERE = 3
"""Exit code with which the benchmark says that it cannot run on this machine."""


def run(
    operations: list[str], repetitions: int, quick: bool, on_line: Callable[[str], None] = lambda line: None
) -> KernelBench:
    """Measure `operations` (all, if none are named) and return the document. `on_line` is told each case's line.

    Raises ProbeIncomplete where there is no kernel package, library or GPU, or the run dies.
    """
    if find_spec(PACKAGE) is None:
        raise ProbeIncomplete(f"bench kernels: the package {PACKAGE} is not installed; expected it beside the engine")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        words = [sys.executable, "-m", f"{PACKAGE}.bench", "--json", str(file), "--repetitions", str(repetitions)]
        words += [word for operation in operations for word in ("--operation", operation)] + ["--quick"] * quick
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            last = ""
            for line in child.stderr:
                last = line.strip() or last
                on_line(line.rstrip())
        if child.returncode == NOT_HERE:
            raise ProbeIncomplete(f"bench kernels: {last.removeprefix(f'{PACKAGE}.bench: ')}")
        if child.returncode or not file.exists():
            raise ProbeIncomplete(f"bench kernels: the benchmark ended with code {child.returncode}: {last}")
        try:
            return KernelBench.read(file)
        except InputError as error:
            raise ProbeIncomplete(f"bench kernels: the benchmark's document is not as expected: {error}") from None
