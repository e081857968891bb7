"""The kernels that are compared. Each takes the arguments of `appliance_kernels.sparse_mla_decode` and returns a
function without arguments that launches it, outputs `[B, 1, H, 512]` first; None where it cannot run here."""

import importlib.util
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import appliance_kernels

from .. import layout

FLASH_MLA_HEADS = 64  # FlashMLA for sm_90 takes 64 heads or 128


def ours(case: dict) -> Callable:
    return lambda: appliance_kernels.sparse_mla_decode(**case)


def ours_prefill(case: dict) -> Callable:
    return lambda: appliance_kernels.sparse_mla_prefill(**case)


def sglang_triton(file: Path | None) -> Callable[[dict], Callable] | None:
    """SGLang's Triton fallback for sm_120, from the installed package or from its source file alone."""
    if file is None:
        try:
            from sglang.kernels.ops.attention import flash_mla_sm120_triton as triton_module
        except ImportError:
            return None
    else:
        spec = importlib.util.spec_from_file_location("flash_mla_sm120_triton", file)
        triton_module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(triton_module)
    decode = triton_module.flash_mla_sparse_decode_triton

    def contender(case: dict) -> Callable:
        extra = [case.get(name) for name in ("extra_k_cache", "extra_indices", "extra_topk_length")]
        return lambda: decode(
            case["q"], case["k_cache"].view(torch.float8_e4m3fn), case["indices"], case["topk_length"],
            case["attn_sink"], 512, 512**-0.5, extra[0] if extra[0] is None else extra[0].view(torch.float8_e4m3fn),
            *extra[1:],
        )  # fmt: skip

    return contender


def flash_mla() -> Callable[[dict], Callable] | None:
    """FlashMLA for sm_90, heads padded to the 64 that it takes; its schedule is made outside the timed region."""
    try:
        from flash_mla.flash_mla_interface import FlashMLASchedMeta, flash_mla_with_kvcache
    except ImportError:
        return None
    if torch.cuda.get_device_capability()[0] not in (9, 10):
        return None

    def contender(case: dict) -> Callable:
        batch, _, heads, dim = case["q"].shape
        q = case["q"].new_zeros(batch, 1, FLASH_MLA_HEADS, dim)
        q[:, :, :heads] = case["q"]
        sink = case["attn_sink"].new_zeros(FLASH_MLA_HEADS)
        sink[:heads] = case["attn_sink"]
        schedule = FlashMLASchedMeta()
        extra = case.get("extra_k_cache")

        def run():
            out, lse = flash_mla_with_kvcache(
                q=q, k_cache=case["k_cache"].view(torch.float8_e4m3fn), block_table=None, cache_seqlens=None,
                head_dim_v=512, tile_scheduler_metadata=schedule, softmax_scale=512**-0.5, is_fp8_kvcache=True,
                indices=case["indices"], attn_sink=sink, topk_length=case["topk_length"],
                extra_k_cache=None if extra is None else extra.view(torch.float8_e4m3fn),
                extra_indices_in_kvcache=case.get("extra_indices"), extra_topk_length=case.get("extra_topk_length"),
                use_legacy=True,
            )  # fmt: skip
            return out[:, :, :heads], lse

        return run

    return contender


def flash_mla_prefill() -> Callable[[dict], Callable] | None:
    """FlashMLA's sparse prefill for sm_90. It takes bf16 keys and one list of tokens: both caches are dequantized and
    joined outside the timed region."""
    try:
        from flash_mla.flash_mla_interface import flash_mla_sparse_fwd
    except ImportError:
        return None
    if torch.cuda.get_device_capability()[0] not in (9, 10):
        return None

    def contender(case: dict) -> Callable:
        rows, _, heads, dim = case["q"].shape
        q = case["q"].new_zeros(rows, FLASH_MLA_HEADS, dim)
        q[:, :heads] = case["q"][:, 0]
        sink = case["attn_sink"].new_zeros(FLASH_MLA_HEADS)
        sink[:heads] = case["attn_sink"]
        keys, indices, offset = [], [], 0
        for cache, listed in (("k_cache", "indices"), ("extra_k_cache", "extra_indices")):
            if case.get(cache) is not None:
                tokens = case[cache].shape[0] * case[cache].shape[1]
                keys.append(dequantized(case[cache], tokens))
                indices.append(case[listed] + offset)
                offset += tokens
        keys, indices = torch.cat(keys).unsqueeze(1), torch.cat(indices, -1)

        def run():
            out, _, lse = flash_mla_sparse_fwd(q, keys, indices, dim**-0.5, 512, sink, None, use_legacy=True)
            return out[:, :heads].unsqueeze(1), lse

        return run

    return contender


def dequantized(cache: torch.Tensor, tokens: int, chunk: int = 1 << 15) -> torch.Tensor:
    """All tokens of a cache as bf16, a part at a time: `layout.read` goes through float64."""
    every = torch.arange(tokens, device=cache.device)
    return torch.cat([layout.read(cache, part) for part in every.split(chunk)])


def flashinfer() -> Callable[[dict], Callable] | None:
    """FlashInfer's sparse MLA for sm_120 as SGLang calls it, the copy of the window's pages included."""
    if torch.cuda.get_device_capability()[0] != 12 or None in map(package_version, ("sglang", "flashinfer-python")):
        return None
    from ..engine.decode_entry import flashinfer as call

    def contender(case: dict) -> Callable:
        names = {"extra_indices": "extra_indices_in_kvcache"}
        arguments = {names.get(name, name): value for name, value in case.items()} | {"head_dim_v": 512}
        return lambda: call(**arguments)

    return contender


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def driver_version() -> str | None:
    """As nvidia-smi says it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
