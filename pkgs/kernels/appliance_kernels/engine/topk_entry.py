"""SGLang's top-k of the indexer: which calls are alike, and the kernels that can serve them.

Written against SGLang 0.5.23, kernels/ops/attention/dsv4/topk.py, which has two: the first gives a row to one block,
the second (the default) shares long rows by a plan that is made of the lengths beforehand. Both write to arguments.
Their order within a row is by chance, ours is the same every time.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from .. import indexer
from .entry import APPLIANCE, STOCK, Kernel, power_of_two, rounded_rows

MAX_MEASURED = 1 << 28  # scores, so that measuring takes a gigabyte at most
SHARES = (1, 8, 64)  # contexts are measured in full and at these shares: a graph is captured for the longest


class Bucket(NamedTuple):
    kernel: str
    rows: int
    width: int
    topk: int

    def __str__(self) -> str:
        return f"indexer {self.kernel}, {self.rows} rows, context {self.width}, best {self.topk}"

    def calls_like(self, call: dict) -> list[dict]:
        device = call["scores"].device

        def integers(columns: int) -> torch.Tensor:
            return torch.zeros(self.rows, columns, dtype=torch.int32, device=device)

        made = call | {
            "scores": torch.randn(self.rows, self.width, device=device).to(call["scores"].dtype),
            "out_page_indices": integers(self.topk),
        }
        if call["page_tables"] is not None:
            made["page_tables"] = integers(-(-self.width // call["page_size"]))
        if call.get("out_raw_indices") is not None:
            made["out_raw_indices"] = integers(self.topk)
        full = torch.full((self.rows,), self.width, dtype=torch.int32, device=device)
        lengths = [(full // share).clamp_min(1) for share in SHARES]
        plans = [{"metadata": plan(of)} if call.get("metadata") is not None else {} for of in lengths]
        return [made | {"seq_lens": of} | with_plan for of, with_plan in zip(lengths, plans, strict=True)]


def plan(lengths: torch.Tensor) -> torch.Tensor:
    from sglang.kernels.ops.attention.dsv4.topk import plan_topk_v2

    return plan_topk_v2(lengths)


def appliance(
    *, scores, seq_lens, page_tables, out_page_indices, page_size, metadata=None, out_raw_indices=None
) -> None:
    """Ours. ValueError for what it does not take, before anything is launched."""
    if page_tables is not None:
        indexer.topk_transform(scores, seq_lens, page_tables, out_page_indices, page_size, out_raw_indices)
    elif out_raw_indices is None:
        indexer.topk_transform(scores, seq_lens, positions=out_page_indices)
    else:
        raise ValueError("topk_transform: out_raw_indices: expected None where page_tables is None, got a tensor")


@dataclass(frozen=True)
class TopkEntry:
    kernel: str
    PARAMETERS: tuple[str, ...]
    NAMES = (APPLIANCE, STOCK)

    def device_of(self, call: dict) -> torch.device:
        return call["scores"].device

    def bucket_of(self, call: dict) -> Bucket | None:
        rows, width = call["scores"].shape
        bucket = Bucket(self.kernel, rounded_rows(rows), power_of_two(width), call["out_page_indices"].shape[1])
        return bucket if 0 < bucket.rows * bucket.width <= MAX_MEASURED else None

    def candidates(self, stock: Kernel) -> dict[str, Kernel]:
        return {APPLIANCE: appliance, STOCK: stock}


FIRST = TopkEntry(
    "top-k", ("scores", "seq_lens", "page_tables", "out_page_indices", "page_size", "out_raw_indices")
)  # fmt: skip
SECOND = TopkEntry(
    "top-k v2",
    ("scores", "seq_lens", "page_tables", "out_page_indices", "page_size", "metadata", "out_raw_indices"),
)
