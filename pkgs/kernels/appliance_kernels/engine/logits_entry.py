"""SGLang's logits of the indexer on sm_120: which calls are alike, and the kernels that can serve them.

Written against SGLang 0.5.23, srt/layers/attention/dsv4/indexer.py: its TileLang kernel and its torch fallback take the
same arguments. Columns at or beyond a row's length are read by nobody: its top-k is told the lengths.
"""

from typing import NamedTuple

import torch

from .. import indexer
from .entry import APPLIANCE, STOCK, Kernel, power_of_two, rounded_rows

NAMES = (APPLIANCE, STOCK)
PARAMETERS = (
    "q_fp8", "kvcache_fp8", "weight", "seq_lens", "page_table", "deep_gemm_metadata", "max_seq_len", "clean_logits"
)  # fmt: skip
MAX_MEASURED = 1 << 28  # logits, so that measuring takes a gigabyte at most
SHARES = (1, 8, 64)  # contexts are measured in full and at these shares: a graph is captured for the longest


class Bucket(NamedTuple):
    rows: int
    width: int

    def __str__(self) -> str:
        return f"indexer logits, {self.rows} rows, context {self.width}"

    def calls_like(self, call: dict) -> list[dict]:
        device, page_size = call["q_fp8"].device, call["kvcache_fp8"].shape[1]
        q = torch.randn(self.rows, *call["q_fp8"].shape[1:], device=device)
        table = (self.rows, -(-self.width // page_size))
        made = call | {
            "q_fp8": q.to(call["q_fp8"].dtype),
            "weight": torch.randn(self.rows, call["weight"].shape[1], device=device).to(call["weight"].dtype),
            "page_table": torch.randint(0, call["kvcache_fp8"].shape[0], table, device=device, dtype=torch.int32),
            "max_seq_len": self.width,
        }
        lengths = call["seq_lens"].new_full((self.rows, *call["seq_lens"].shape[1:]), self.width)
        return [made | {"seq_lens": (lengths // share).clamp_min(1)} for share in SHARES]


def device_of(call: dict) -> torch.device:
    return call["q_fp8"].device


def bucket_of(call: dict) -> Bucket | None:
    bucket = Bucket(rounded_rows(call["q_fp8"].shape[0]), power_of_two(call["max_seq_len"]))
    return bucket if 0 < bucket.rows * bucket.width <= MAX_MEASURED else None


def appliance(*, q_fp8, kvcache_fp8, weight, seq_lens, page_table, max_seq_len, clean_logits, deep_gemm_metadata=None):
    """Ours. ValueError for what it does not take, before anything is launched."""
    if clean_logits:
        raise ValueError("paged_mqa_logits: clean_logits: expected False, got True")
    return indexer.paged_mqa_logits(q_fp8, kvcache_fp8, weight, seq_lens, page_table, max_seq_len)


def candidates(stock: Kernel) -> dict[str, Kernel]:
    return {APPLIANCE: appliance, STOCK: stock}
