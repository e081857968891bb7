"""Sparse MLA prefill: the caches and widths of decode, many query tokens."""

from pathlib import Path

import torch

from .. import layout, prefill, prepare, reference
from ..cases import random_cache, random_case
from . import contenders
from .decode import EXTRA_PAGE, EXTRA_PAGES, WINDOW, WINDOW_PAGE, WINDOW_PAGES
from .operation import APPLIANCE, Case, relative_error

BATCHES = (65, 128, 256, 512, 1024, 2048, 4096, 8192)  # query tokens
EXTRA = 512
COMPARED_ROWS = 64  # what the float64 reference is made for


class Prefill:
    name = "sparse_mla_prefill"

    def __init__(self, device: torch.device, sglang_triton: Path | None = None):
        prepare(device)
        generator = torch.Generator(device).manual_seed(0)
        self._caches = [
            random_cache(WINDOW_PAGES, WINDOW_PAGE, generator), random_cache(EXTRA_PAGES, EXTRA_PAGE, generator)
        ]  # fmt: skip
        known = {
            "FlashMLA sparse prefill": (contenders.flash_mla_prefill(), "needs sgl-flash-mla and sm_90 or sm_100"),
            "FlashMLA decode": (contenders.flash_mla(), "needs sgl-flash-mla and sm_90 or sm_100"),
            "FlashInfer": (contenders.flashinfer(), "needs sglang, flashinfer-python and sm_120"),
            "SGLang Triton": (contenders.sglang_triton(sglang_triton), "needs sglang, or --sglang-triton FILE"),
        }
        self._entrants = {APPLIANCE: contenders.ours_prefill, "appliance decode": contenders.ours}
        self._entrants |= {name: made for name, (made, _) in known.items() if made}
        self.left_out = {name: needs for name, (made, needs) in known.items() if not made}

    def shapes(self, quick: bool) -> list[dict]:
        def shape(heads, batch, extra=EXTRA):
            return {"heads": heads, "batch": batch, "window": WINDOW, "extra": extra}

        if quick:
            return [shape(16, batch) for batch in (65, 1024, 8192)]
        return [
            *(shape(16, batch) for batch in BATCHES),
            *(shape(heads, batch) for heads in (8, 32, 64) for batch in (65, 1024, 8192)),
            *(shape(16, batch, extra) for extra in (0, 2048) for batch in (65, 1024, 8192)),
        ]

    def case(self, shape: dict) -> Case:
        heads, batch, extra = (shape[name] for name in ("heads", "batch", "extra"))
        case = random_case(batch, heads, self._caches[0], WINDOW, self._caches[1], extra)
        per_row = ("q", "indices", "topk_length", "extra_indices", "extra_topk_length")
        first = {name: case[name][:COMPARED_ROWS] for name in per_row if name in case}
        want, _ = reference.sparse_mla_decode(**(case | first))
        per_block, at_once = prefill._device(case["q"].device, heads)
        return Case(
            shape=shape, bytes=batch * ((WINDOW + extra) * layout.TOKEN_BYTES + heads * layout.HEAD_DIM * 4),
            blocks=batch * heads // per_block, blocks_at_once=at_once,
            kernels={name: entrant(case) for name, entrant in self._entrants.items()},
            error=lambda result: relative_error(result[0][:COMPARED_ROWS], want),
        )  # fmt: skip
