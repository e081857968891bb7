"""The kernels that can serve SGLang's sm_120 decode entry point, each called with the entry point's own arguments."""

from collections.abc import Callable

import appliance_kernels

NAMES = APPLIANCE, STOCK, FLASHINFER, TRITON = "appliance", "stock", "flashinfer", "triton"
Candidate = Callable[..., tuple]


def appliance(*, head_dim_v, extra_indices_in_kvcache=None, **call) -> tuple:
    """Ours. ValueError for what it does not take, before anything is launched."""
    return appliance_kernels.sparse_mla_decode(**call, extra_indices=extra_indices_in_kvcache)


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


def candidates(stock: Candidate) -> dict[str, Candidate]:
    """By name. `stock` is the entry point itself, with the backend that the server is set to."""
    return {APPLIANCE: appliance, STOCK: stock, FLASHINFER: flashinfer, TRITON: triton}
