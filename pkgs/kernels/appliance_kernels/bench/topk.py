"""The indexer from query to tokens: logits and their best 512; and the top-k alone, of given logits."""

import torch

from ..indexer import layout, paged_mqa_logits, paged_topk, prepare, reference, stock, topk, topk_transform
from ..indexer.cases import random_cache, random_case
from .indexer import BATCHES, COMPARED_TOKENS, CONTEXTS, PAGES, bound, deep_gemm_is_here
from .operation import APPLIANCE, Case

TOPK = 512


class IndexerTopk:
    """Kernels named "top-k ..." are given the logits; the others start from the query."""

    name = "indexer_topk"

    def __init__(self, device: torch.device):
        prepare(device)
        self._generator = torch.Generator(device).manual_seed(0)
        self._cache = random_cache(PAGES, self._generator)
        self.left_out = {}
        self._logits, self._topk = {}, {"top-k appliance": bound(topk_transform)}
        self._offer(self._logits, "SGLang torch", lambda: stock.source(stock.TORCH_FILE), bound(stock.sglang_torch))
        self._offer(self._logits, "SGLang TileLang", stock._tilelang, bound(stock.sglang_tilelang))
        if torch.cuda.get_device_capability(device)[0] in (9, 10):
            self._offer(self._logits, "DeepGEMM", deep_gemm_is_here, lambda case: stock.deep_gemm(**case))
        else:
            self.left_out["DeepGEMM"] = "needs sm_90 or sm_100"
        self._offer(self._topk, "top-k SGLang torch", stock._torch_topk, bound(stock.sglang_torch_topk))
        self._offer(self._topk, "top-k SGLang", self._try(bound(stock.sglang_topk)), bound(stock.sglang_topk))
        v2 = lambda case: stock.sglang_topk_v2(**case)  # noqa: E731
        self._offer(self._topk, "top-k SGLang v2", self._try(v2), v2)

    def _offer(self, entrants: dict, name: str, probe, entrant) -> None:
        try:
            probe()
        except Exception as error:  # a package that is absent, or that does not load beside this torch
            self.left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            entrants[name] = entrant

    def _try(self, entrant):
        """A small call: these kernels are compiled at their first one."""
        device = self._cache.device
        case = {
            "scores": torch.zeros(1, 1024, device=device),
            "lengths": torch.ones(1, dtype=torch.int32, device=device),
            "page_table": torch.zeros(1, 16, dtype=torch.int32, device=device),
            "tokens": torch.zeros(1, TOPK, dtype=torch.int32, device=device), "page_size": layout.PAGE_SIZE,
        }  # fmt: skip
        return lambda: entrant(case)()

    def shapes(self, quick: bool) -> list[dict]:
        contexts, batches = (CONTEXTS[1:], BATCHES[::3]) if quick else (CONTEXTS, BATCHES)
        return [{"batch": batch, "context": context} for context in contexts for batch in batches]

    def case(self, shape: dict) -> Case:
        batch, context = shape["batch"], shape["context"]
        case = random_case([context] * batch, self._cache, context, self._generator)
        tokens = torch.empty(batch, TOPK, dtype=torch.int32, device=self._cache.device)
        scores = paged_mqa_logits(**case)
        given = {
            "scores": scores, "lengths": case["lengths"], "page_table": case["page_table"], "tokens": tokens,
            "page_size": layout.PAGE_SIZE,
        }  # fmt: skip
        rows = max(1, min(batch, COMPARED_TOKENS // context))
        first = {name: case[name][:rows] for name in ("q", "weights", "lengths", "page_table")}
        logits = reference.paged_mqa_logits(**(case | first))

        def then_topk(logits_of):
            run = logits_of(case)
            return lambda: stock.sglang_torch_topk(**(given | {"scores": run()[:, :context]}))

        ours = {APPLIANCE: lambda: paged_topk(**case, tokens=tokens)}
        stocks = {name: then_topk(made) for name, made in self._logits.items()}
        alone = {name: made(given) for name, made in self._topk.items()}
        at_once, largest = topk._limits(self._cache.device)
        return Case(
            shape=shape, bytes=batch * (context * layout.TOKEN_BYTES + TOPK * 4 + layout.HEADS * (layout.HEAD_DIM + 4)),
            blocks=batch * topk.blocks_of_row(batch, context, at_once, largest), blocks_at_once=at_once,
            kernels={name: returning(tokens, run) for name, run in (ours | stocks | alone).items()},
            error=lambda result: lost(result[:rows], logits, first["page_table"]),
        )  # fmt: skip


def returning(tokens, run):
    def call():
        run()
        return tokens

    return call


def lost(tokens, logits, page_table) -> float:
    """By how much the chosen logits' sum falls short of the best one's, relative to the logits' spread there. Pages may
    stand twice in a row's table, so tokens are looked up by the positions that they can stand for."""
    rows, context = logits.shape
    position = torch.arange(context, device=logits.device)
    short = 0.0
    for row in range(rows):
        own = page_table[row, position // layout.PAGE_SIZE].long() * layout.PAGE_SIZE + position % layout.PAGE_SIZE
        chosen = torch.isin(own, tokens[row].long())
        best = torch.topk(logits[row], min(TOPK, context)).values
        got = torch.topk(logits[row].masked_fill(~chosen, float("-inf")), best.numel()).values
        short = max(short, float((best.sum() - got.sum()) / best.abs().sum()))
    return short
