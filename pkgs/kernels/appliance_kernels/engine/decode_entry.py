"""SGLang's sparse attention on sm_120: which calls are alike, and the kernels that can serve them.

Written against SGLang 0.5.23, kernels/ops/attention/flash_mla_sm120.py.
"""

from typing import NamedTuple

import torch

import appliance_kernels

from . import trial
from .entry import APPLIANCE, STOCK, Kernel, power_of_two, rounded_rows

FLASHINFER, TRITON = "flashinfer", "triton"
NAMES = (APPLIANCE, STOCK, FLASHINFER, TRITON)
PARAMETERS = ()
MAX_DECODE = 64  # SM120_DECODE_MAX_TOKENS there: larger calls are prefill
MAX_MEASURED = 1024  # query tokens: prefill's time grows evenly from far fewer on
HEAD_DIM = 512
SHORT = 8  # lengths are measured in full and at a share of this


class Bucket(NamedTuple):
    batch: int
    heads: int
    width: int
    page_size: int
    extra_width: int
    extra_page_size: int

    def __str__(self) -> str:
        extra = f" + {self.extra_width} (pages of {self.extra_page_size})" if self.extra_width else ""
        phase = "decode" if self.batch <= MAX_DECODE else "prefill"
        return f"{phase}, batch {self.batch}, heads {self.heads}, {self.width} (pages of {self.page_size}){extra}"

    def calls_like(self, call: dict) -> list[dict]:
        """A run of window tokens a row, as a request has them; compressed tokens from anywhere. Full lengths, and short
        ones: what the engine passes before a graph capture has a length of one."""
        device, (pages, page_size) = call["q"].device, call["k_cache"].shape[:2]
        run = torch.arange(self.width, device=device, dtype=torch.int32)
        start = torch.randint(0, max(1, pages * page_size - self.width), (self.batch, 1, 1), device=device)
        made = call | {
            "q": torch.randn(self.batch, 1, self.heads, HEAD_DIM, device=device, dtype=call["q"].dtype),
            "indices": ((start + run) % (pages * page_size)).int(),
        }
        if self.extra_width:
            tokens = call["extra_k_cache"].shape[0] * self.extra_page_size
            shape = (self.batch, 1, self.extra_width)
            made["extra_indices_in_kvcache"] = torch.randint(0, tokens, shape, device=device, dtype=torch.int32)

        def lengths(width: int) -> torch.Tensor:
            return torch.full((self.batch,), width, device=device, dtype=torch.int32)

        return [
            made
            | {"topk_length": lengths(-(-self.width // share))}
            | ({"extra_topk_length": lengths(-(-self.extra_width // share))} if self.extra_width else {})
            for share in (1, SHORT)
        ]


def device_of(call: dict) -> torch.device:
    return call["q"].device


def bucket_of(call: dict) -> Bucket | None:
    q, extra = call["q"], call.get("extra_k_cache")
    if q.ndim != 4 or q.shape[0] == 0 or call["head_dim_v"] != HEAD_DIM:
        return None
    if q.shape[0] > MAX_DECODE and not trial.wanted():  # our prefill has run on no GPU yet
        return None
    return Bucket(
        min(rounded_rows(q.shape[0]), MAX_MEASURED), q.shape[2],
        power_of_two(call["indices"].shape[-1]), call["k_cache"].shape[1],
        0 if extra is None else power_of_two(call["extra_indices_in_kvcache"].shape[-1]),
        0 if extra is None else extra.shape[1],
    )  # fmt: skip


def appliance(*, head_dim_v, extra_indices_in_kvcache=None, **call) -> tuple:
    """Ours. ValueError for what it does not take, before anything is launched."""
    decodes = call["q"].shape[0] <= MAX_DECODE
    kernel = appliance_kernels.sparse_mla_decode if decodes else appliance_kernels.sparse_mla_prefill
    return kernel(**call, extra_indices=extra_indices_in_kvcache)


def flashinfer(**call) -> tuple:
    from sglang.kernels.ops.attention.flash_mla_sm120 import _flash_mla_flashinfer

    return _flash_mla_flashinfer(*in_order(call))


def triton(**call) -> tuple:
    from sglang.kernels.ops.attention.flash_mla_sm120_triton import flash_mla_sparse_decode_triton

    return flash_mla_sparse_decode_triton(*in_order(call))


def in_order(call: dict) -> tuple:
    """The arguments as SGLang's own backends take them, by position."""
    scale = call.get("softmax_scale")
    return (
        call["q"], call["k_cache"], call["indices"], call.get("topk_length"), call.get("attn_sink"), call["head_dim_v"],
        call["q"].shape[-1] ** -0.5 if scale is None else scale,
        call.get("extra_k_cache"), call.get("extra_indices_in_kvcache"), call.get("extra_topk_length"),
    )  # fmt: skip


def candidates(stock: Kernel) -> dict[str, Kernel]:
    return {APPLIANCE: appliance, STOCK: stock, FLASHINFER: flashinfer, TRITON: triton}
