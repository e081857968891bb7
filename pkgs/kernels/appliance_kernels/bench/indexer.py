"""The indexer's logits, every row with a context of the same length."""

import importlib.util

import torch

from ..indexer import layout, logits, paged_mqa_logits, prepare, reference, stock
from ..indexer.cases import random_cache, random_case
from .operation import APPLIANCE, Case, relative_error

CONTEXTS = (1 << 10, 1 << 14, 1 << 17, 1 << 20)
BATCHES = (1, 4, 16, 64)
PAGES = 1 << 17  # 1.1 GB: far beyond any L2 cache
COMPARED_TOKENS = 1 << 21  # what the float64 reference is made for


class IndexerLogits:
    name = "indexer_logits"

    def __init__(self, device: torch.device):
        prepare(device)
        self._generator = torch.Generator(device).manual_seed(0)
        self._cache = random_cache(PAGES, self._generator)
        self._entrants = {APPLIANCE: lambda case: lambda: paged_mqa_logits(**case)}
        self.left_out = {}
        self._offer("SGLang torch", lambda: stock.source(stock.TORCH_FILE), bound(stock.sglang_torch))
        self._offer("SGLang TileLang", stock._tilelang, bound(stock.sglang_tilelang))
        if torch.cuda.get_device_capability(device)[0] not in (9, 10):
            self.left_out["DeepGEMM"] = "needs sm_90 or sm_100"
        else:
            self._offer("DeepGEMM", deep_gemm_is_here, lambda case: stock.deep_gemm(**case))

    def _offer(self, name: str, probe, entrant) -> None:
        try:
            probe()
        except Exception as error:  # a package that is absent, or that does not load beside this torch
            self.left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            self._entrants[name] = entrant

    def shapes(self, quick: bool) -> list[dict]:
        contexts, batches = (CONTEXTS[:2], BATCHES[::3]) if quick else (CONTEXTS, BATCHES)
        return [{"batch": batch, "context": context} for context in contexts for batch in batches]

    def case(self, shape: dict) -> Case:
        batch, context = shape["batch"], shape["context"]
        case = random_case([context] * batch, self._cache, context, self._generator)
        rows = max(1, min(batch, COMPARED_TOKENS // context))
        first = {name: case[name][:rows] for name in ("q", "weights", "lengths", "page_table")}
        want = reference.paged_mqa_logits(**(case | first))
        blocks = logits._blocks(case["q"].device)
        return Case(
            shape=shape, bytes=batch * (context * (layout.TOKEN_BYTES + 4) + layout.HEADS * (layout.HEAD_DIM + 4)),
            blocks=blocks, blocks_at_once=blocks,
            kernels={name: entrant(case) for name, entrant in self._entrants.items()},
            error=lambda result: relative_error(result[:rows, :context], want),
        )  # fmt: skip


def bound(function):
    return lambda case: lambda: function(**case)


def deep_gemm_is_here() -> None:
    if importlib.util.find_spec("deep_gemm") is None:
        raise ImportError("deep_gemm is not installed")
    import deep_gemm  # noqa: F401
