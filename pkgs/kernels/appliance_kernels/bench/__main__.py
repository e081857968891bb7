"""Sparse MLA decode side by side: a table on standard output and the numbers as JSON.

python -m appliance_kernels.bench [--json FILE] [--sglang-triton FILE] [--repetitions N] [--quick]
"""

import argparse
import datetime
import json
import platform
import sys
from pathlib import Path

import torch

from .. import decode as decode_module
from .. import layout, prepare, reference
from ..cases import random_cache, random_case
from ..plan import plan, tiles
from . import contenders
from .timing import Stopwatch

WINDOW = 128
BATCHES = (1, 2, 4, 8, 16, 32, 64)
WINDOW_PAGES, WINDOW_PAGE, EXTRA_PAGES, EXTRA_PAGE = 256, 256, 4096, 64


def shapes(quick: bool):
    """(heads, batch, extra width, rows share their tokens): the goals' shapes first, then the others."""
    yield from ((16, batch, 512, False) for batch in BATCHES)
    if quick:
        return
    yield from ((heads, batch, 512, False) for heads in (8, 32, 64) for batch in BATCHES)
    yield from ((16, batch, extra, False) for extra in (0, 128, 2048, 8192) for batch in BATCHES)
    yield from ((16, batch, 512, True) for batch in BATCHES)


def relative_error(function, want) -> float:
    return float((function()[0].double() - want).norm() / want.norm())


def measure(shape, caches, entrants, stopwatch) -> dict:
    heads, batch, extra, shared = shape
    case = random_case(batch, heads, caches[0], WINDOW, caches[1], extra, shared)
    device = decode_module._device(case["q"].device, heads)
    groups = heads // device.heads_per_block
    chosen = plan(batch * groups, tiles(WINDOW, extra, device.tokens_per_tile), device)
    rows = 1 if shared else batch
    result = {
        "heads": heads,
        "batch": batch,
        "window": WINDOW,
        "extra": extra,
        "shared_tokens": shared,
        "kv_bytes": rows * (WINDOW + extra) * layout.TOKEN_BYTES,
        "cluster": chosen.cluster,
        "splits": chosen.splits,
        "blocks": batch * groups * chosen.cluster * chosen.splits,
        "blocks_at_once": device.blocks,
    }
    want, _ = reference.sparse_mla_decode(**case)
    for name, entrant in entrants.items():
        if entrant is not None:
            run = entrant(case)
            result[name] = {"relative_error": relative_error(run, want)} | stopwatch.time(run).as_dict()
    return result


def environment(stopwatch) -> dict:
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": device.name,
        "multiprocessors": device.multi_processor_count,
        "capability": f"{device.major}.{device.minor}",
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "versions": {n: contenders.package_version(n) for n in ("torch", "triton", "sgl-flash-mla", "sglang")},
        "driver": contenders.driver_version(),
        "copy_bytes_per_second": round(stopwatch.copy_bandwidth()),
        "empty_graph_us": stopwatch.empty_graph().as_dict(),
        "method": "CUDA graph replay between two events, L2 flushed before each; microseconds",
    }


def table_row(r: dict, bandwidth: float) -> str:
    def cell(name):
        return f"{r[name]['median']:9.1f}" if name in r else " " * 8 + "-"

    def ratio(a, b):
        return f"{r[a]['median'] / r[b]['median']:7.2f}" if a in r and b in r else " " * 6 + "-"

    limit = r["kv_bytes"] / bandwidth * 1e6
    return (
        f"{r['heads']:3d} {r['batch']:3d} {r['extra']:5d}{'s' if r['shared_tokens'] else ' '}"
        f"{r['blocks']:6d} {cell('ours')} {r['ours']['p10']:6.1f}-{r['ours']['p90']:<6.1f}"
        f"{cell('flash_mla')}{cell('triton')}"
        f" {ratio('ours', 'flash_mla')} {ratio('triton', 'ours')} {limit:7.2f} {r['ours']['median'] / limit:6.1f}"
        f" {r['ours']['relative_error']:.1e} {r.get('flash_mla', r['ours'])['relative_error']:.1e}"
    )


HEADER = (
    "  H   B extra blocks      ours    p10-p90   FlashMLA   Triton ours/FM  Tr/ours   limit  /limit err ours/FlashMLA"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m appliance_kernels.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument(
        "--sglang-triton", type=Path, help="SGLang's flash_mla_sm120_triton.py, if SGLang is not installed"
    )
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="only the shapes of the goals")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("appliance_kernels.bench: no CUDA GPU here", file=sys.stderr)
        return 3
    device = torch.device("cuda", torch.cuda.current_device())
    prepare(device)
    stopwatch = Stopwatch(device, options.repetitions)
    record = environment(stopwatch)
    generator = torch.Generator(device).manual_seed(0)
    caches = [random_cache(WINDOW_PAGES, WINDOW_PAGE, generator), random_cache(EXTRA_PAGES, EXTRA_PAGE, generator)]
    entrants = {
        "ours": contenders.ours,
        "flash_mla": contenders.flash_mla(),
        "triton": contenders.sglang_triton(options.sglang_triton),
    }
    bandwidth = record["copy_bytes_per_second"]
    print(
        f"{record['device']}, {record['multiprocessors']} SMs, {record['versions']}, copy {bandwidth / 1e12:.2f} TB/s, "
        f"empty graph {record['empty_graph_us']['median']:.1f} us; medians of {options.repetitions}, us"
    )
    print(HEADER, flush=True)
    record["rows"] = []
    for shape in shapes(options.quick):
        record["rows"].append(measure(shape, caches, entrants, stopwatch))
        print(table_row(record["rows"][-1], bandwidth), flush=True)
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
