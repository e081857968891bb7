"""Calls of SGLang's sm_120 decode entry point: their shapes as a bucket, and made-up calls of a bucket to measure with.

Written against SGLang 0.5.23, kernels/ops/attention/flash_mla_sm120.py.
"""

from typing import NamedTuple

import torch

MAX_BATCH = 64  # SM120_DECODE_MAX_TOKENS there: larger calls are prefill, which the stock kernels keep
HEAD_DIM = 512


def rounded_batch(batch: int) -> int:
    """Powers of two up to 8, then multiples of 8: near the sizes that SGLang captures."""
    return 1 << (batch - 1).bit_length() if batch <= 8 else -(-batch // 8) * 8


def rounded_width(width: int) -> int:
    return 1 << (width - 1).bit_length() if width > 0 else 0


class Bucket(NamedTuple):
    """Calls for which one choice holds; measured at its upper end."""

    batch: int
    heads: int
    width: int
    page_size: int
    extra_width: int
    extra_page_size: int

    @classmethod
    def of(cls, call: dict) -> "Bucket | None":
        """None: a call that is not for the decode kernel."""
        q, extra = call["q"], call.get("extra_k_cache")
        if q.ndim != 4 or not 0 < q.shape[0] <= MAX_BATCH or call["head_dim_v"] != HEAD_DIM:
            return None
        return cls(
            rounded_batch(q.shape[0]), q.shape[2],
            rounded_width(call["indices"].shape[-1]), call["k_cache"].shape[1],
            0 if extra is None else rounded_width(call["extra_indices_in_kvcache"].shape[-1]),
            0 if extra is None else extra.shape[1],
        )  # fmt: skip

    def __str__(self) -> str:
        extra = f" + {self.extra_width} (pages of {self.extra_page_size})" if self.extra_width else ""
        return f"decode, batch {self.batch}, heads {self.heads}, {self.width} (pages of {self.page_size}){extra}"

    def call_like(self, call: dict) -> dict:
        """A call of this bucket's size on the same caches: full lengths, a run of window tokens a row as a request has
        them, compressed tokens from anywhere. What the engine passes before a graph capture has a length of one."""
        device = call["q"].device
        pages = call["k_cache"].shape[0] * self.page_size
        run = torch.arange(self.width, device=device, dtype=torch.int32)
        start = torch.randint(0, max(1, pages - self.width), (self.batch, 1, 1), device=device, dtype=torch.int32)
        made = call | {
            "q": torch.randn(self.batch, 1, self.heads, HEAD_DIM, device=device, dtype=call["q"].dtype),
            "indices": (start + run) % pages,
            "topk_length": torch.full((self.batch,), self.width, device=device, dtype=torch.int32),
        }
        if self.extra_width:
            tokens = call["extra_k_cache"].shape[0] * self.extra_page_size
            shape = (self.batch, 1, self.extra_width)
            made |= {
                "extra_indices_in_kvcache": torch.randint(0, tokens, shape, device=device, dtype=torch.int32),
                "extra_topk_length": torch.full((self.batch,), self.extra_width, device=device, dtype=torch.int32),
            }
        return made
