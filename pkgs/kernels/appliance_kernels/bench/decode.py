"""Sparse MLA decode: a window of 128 tokens and an extra cache, as DeepSeek-V4 decodes."""

from pathlib import Path

import torch

from .. import decode, layout, prepare, reference
from ..cases import random_cache, random_case
from ..plan import plan, tiles
from . import contenders
from .operation import APPLIANCE, Case, relative_error

WINDOW = 128
BATCHES = (1, 2, 4, 8, 16, 32, 64)
WINDOW_PAGES, WINDOW_PAGE, EXTRA_PAGES, EXTRA_PAGE = 256, 256, 4096, 64


class Decode:
    name = "sparse_mla_decode"

    def __init__(self, device: torch.device, sglang_triton: Path | None = None):
        prepare(device)
        generator = torch.Generator(device).manual_seed(0)
        self._caches = [
            random_cache(WINDOW_PAGES, WINDOW_PAGE, generator), random_cache(EXTRA_PAGES, EXTRA_PAGE, generator)
        ]  # fmt: skip
        known = {
            "FlashMLA": (contenders.flash_mla(), "needs sgl-flash-mla and sm_90 or sm_100"),
            "FlashInfer": (contenders.flashinfer(), "needs sglang, flashinfer-python and sm_120"),
            "SGLang Triton": (contenders.sglang_triton(sglang_triton), "needs sglang, or --sglang-triton FILE"),
        }
        self._entrants = {APPLIANCE: contenders.ours} | {name: made for name, (made, _) in known.items() if made}
        self.left_out = {name: needs for name, (made, needs) in known.items() if not made}

    def shapes(self, quick: bool) -> list[dict]:
        """The goals' shapes first, then the others."""

        def shape(heads, batch, extra=512, shared=False):
            return {"heads": heads, "batch": batch, "window": WINDOW, "extra": extra, "shared_tokens": shared}

        goals = [shape(16, batch) for batch in BATCHES]
        if quick:
            return goals
        return [
            *goals,
            *(shape(heads, batch) for heads in (8, 32, 64) for batch in BATCHES),
            *(shape(16, batch, extra) for extra in (0, 128, 2048, 8192) for batch in BATCHES),
            *(shape(16, batch, shared=True) for batch in BATCHES),
        ]

    def case(self, shape: dict) -> Case:
        heads, batch, extra, shared = (shape[name] for name in ("heads", "batch", "extra", "shared_tokens"))
        case = random_case(batch, heads, self._caches[0], WINDOW, self._caches[1], extra, shared)
        device = decode._device(case["q"].device, heads)
        groups = heads // device.heads_per_block
        chosen = plan(batch * groups, tiles(WINDOW, extra, device.tokens_per_tile), device)
        want, _ = reference.sparse_mla_decode(**case)
        return Case(
            shape=shape, bytes=(1 if shared else batch) * (WINDOW + extra) * layout.TOKEN_BYTES,
            blocks=batch * groups * chosen.cluster * chosen.splits, blocks_at_once=device.blocks,
            kernels={name: entrant(case) for name, entrant in self._entrants.items()},
            error=lambda result: relative_error(result[0], want),
        )  # fmt: skip
