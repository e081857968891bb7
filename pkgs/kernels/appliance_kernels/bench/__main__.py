"""Our kernels and the stock ones side by side, in one process on one GPU. The document is written after every case.

python -m appliance_kernels.bench [--json FILE] [--operation NAME] [--repetitions N] [--quick] [--sglang-triton FILE]
"""

import argparse
import json
import sys
from pathlib import Path

import torch

from .. import library
from .decode import Decode
from .indexer import IndexerLogits
from .operation import Case
from .prefill import Prefill
from .record import opening
from .timing import Stopwatch
from .topk import IndexerTopk

OPERATIONS = {operation.name: operation for operation in (Decode, Prefill, IndexerLogits, IndexerTopk)}
WITH_TRITON_FILE = (Decode, Prefill)
SECONDS_EACH = 2.0  # a kernel that is slow is repeated less often, but ten times at least


def timed(case: Case, stopwatch: Stopwatch) -> dict[str, dict]:
    """Times and errors by kernel; a kernel that fails at this shape says why."""
    results = {}
    for name, run in case.kernels.items():
        try:
            error = case.error(run())
            repetitions, once = stopwatch.repetitions, Stopwatch.once(run)
            stopwatch.repetitions = max(10, min(repetitions, int(SECONDS_EACH / once)))
            try:
                times, captured = stopwatch.time(run), True
            except torch.OutOfMemoryError:
                raise
            except Exception:
                torch.cuda.synchronize()
                times, captured = stopwatch.time(run, graph=False), False
            finally:
                stopwatch.repetitions = repetitions
            results[name] = {"us": times.as_dict(), "relative_error": error, "captured": captured}
        except Exception as error:  # whatever a foreign kernel raises, the others are measured
            results[name] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}
        torch.cuda.empty_cache()  # what one kernel took, the next may need
    return results


def line(operation: str, case: Case, results: dict[str, dict]) -> str:
    shape = " ".join(f"{name}={value}" for name, value in case.shape.items())
    times = ", ".join(f"{name} {r['us']['median']:.1f}" if "us" in r else f"{name} -" for name, r in results.items())
    return f"{operation} {shape}: {times}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m appliance_kernels.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the document to this file")
    parser.add_argument("--operation", choices=OPERATIONS, action="append", help="may be given several times; all")
    parser.add_argument("--sglang-triton", type=Path, help="flash_mla_sm120_triton.py, if SGLang is not installed")
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="fewer shapes")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("appliance_kernels.bench: no CUDA GPU here", file=sys.stderr)
        return 3
    try:
        library.load()
    except OSError as error:
        print(f"appliance_kernels.bench: {error}", file=sys.stderr)
        return 3
    device = torch.device("cuda", torch.cuda.current_device())
    stopwatch = Stopwatch(device, options.repetitions)
    document = opening(" ".join(["python -m appliance_kernels.bench", *sys.argv[1:]]), library.path(), stopwatch)
    for name in options.operation or OPERATIONS:
        made = OPERATIONS[name]
        operation = made(device, options.sglang_triton) if made in WITH_TRITON_FILE else made(device)
        document["left_out"][name] = operation.left_out
        for shape in operation.shapes(options.quick):
            case = operation.case(shape)
            results = timed(case, stopwatch)
            document["cases"].append({
                "operation": name, "shape": case.shape, "bytes": case.bytes, "blocks": case.blocks,
                "blocks_at_once": case.blocks_at_once, "kernels": results,
            })  # fmt: skip
            print(line(name, case, results), file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(document, indent=1) + "\n")
    if not options.json:
        print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
