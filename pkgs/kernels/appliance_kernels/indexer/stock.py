"""The engine's own kernels of the indexer, called with the arguments of `paged_mqa_logits` and `topk_transform`.

SGLang's functions are taken alone out of its source files: their modules import the whole engine and what that needs.
"""

import ast
import importlib.util
import os
from functools import cache
from pathlib import Path

import torch

from . import layout

SOURCES_VARIABLE = "APPLIANCE_SGLANG_SOURCES"
"""A folder with SGLang's package, where it is not installed."""
TORCH_FILE = "srt/layers/attention/dsv4/indexer.py"
TILELANG_FILE = "kernels/ops/attention/dsa/tilelang_kernel.py"


def source(file: str) -> Path:
    """ImportError where there is no SGLang."""
    folder = os.environ.get(SOURCES_VARIABLE)
    if not folder:
        spec = importlib.util.find_spec("sglang")
        if spec is None:
            raise ImportError("SGLang is not installed")
        folder = spec.submodule_search_locations[0]
    return Path(folder) / file


def functions(file: Path, names: set[str], namespace: dict) -> dict:
    """The named functions of a source file, compiled over `namespace`."""
    tree = ast.parse(file.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    for node in tree.body:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    exec(compile(tree, str(file), "exec"), namespace)  # noqa: S102
    return namespace


@cache
def _torch_fallback():
    names = {"fp8_paged_mqa_logits_torch_sm120"}
    space = {"torch": torch, "F": torch.nn.functional, "FP8_DTYPE": torch.float8_e4m3fn}
    return functions(source(TORCH_FILE), names, space)["fp8_paged_mqa_logits_torch_sm120"]


@cache
def _tilelang():
    import functools

    import tilelang
    import tilelang.language as T

    key = tilelang.PassConfigKey
    space = {
        "functools": functools, "tilelang": tilelang, "T": T, "torch": torch,
        "FP8": "float8_e4m3fn", "FP32": "float32", "INT32": "int32", "UINT8": "uint8",
        "pass_configs": {key.TL_DISABLE_WARP_SPECIALIZED: True, key.TL_DISABLE_TMA_LOWER: True},
    }  # fmt: skip
    names = {"fp8_paged_mqa_logits_kernel", "tilelang_fp8_paged_mqa_logits"}
    return functions(source(TILELANG_FILE), names, space)["tilelang_fp8_paged_mqa_logits"]


def _query(q: torch.Tensor) -> torch.Tensor:
    return q.view(-1, 1, layout.HEADS, layout.HEAD_DIM)


def sglang_torch(q, cache, weights, lengths, page_table, width) -> torch.Tensor:
    """SGLang's torch fallback for sm_120."""
    return _torch_fallback()(
        _query(q), cache.view(torch.uint8), weights, lengths, page_table, None, width, clean_logits=False
    )


def sglang_tilelang(q, cache, weights, lengths, page_table, width) -> torch.Tensor:
    """SGLang's TileLang kernel, its default on sm_120."""
    return _tilelang()(
        _query(q), cache.view(torch.uint8), weights, lengths, page_table, None, width, clean_logits=False
    )


def deep_gemm(q, cache, weights, lengths, page_table, width):
    """DeepGEMM's kernel (sm_90, sm_100) as a function of no arguments: its schedule is made once, before."""
    import deep_gemm as library

    lengths = lengths.view(-1, 1)
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    schedule = library.get_paged_mqa_logits_metadata(lengths, layout.PAGE_SIZE, processors)
    return lambda: library.fp8_paged_mqa_logits(
        _query(q), cache.view(torch.uint8), weights, lengths, page_table, schedule, width, clean_logits=False
    )


@cache
def _torch_topk():
    names = {"_topk_transform_vectorized", "topk_transform_pytorch_vectorized"}
    space = {"torch": torch, "F": torch.nn.functional, "_arange_cache": {}}
    return functions(source(TORCH_FILE), names, space)["topk_transform_pytorch_vectorized"]


def sglang_torch_topk(scores, lengths, page_table, tokens, page_size) -> None:
    """SGLang's torch fallback: 512 columns, whatever the width of `tokens`."""
    _torch_topk()(scores, lengths, page_table, tokens, page_size)


def sglang_topk(scores, lengths, page_table, tokens, page_size) -> None:
    """SGLang's compiled kernel, a block a row. ImportError where SGLang, or what it compiles with, is absent."""
    from sglang.kernels.ops.attention.dsv4.topk import topk_transform_paged

    topk_transform_paged(scores, lengths, page_table, tokens, page_size)


def sglang_topk_v2(scores, lengths, page_table, tokens, page_size):
    """SGLang's second kernel, with clusters, as a function of no arguments: its plan is made once, before."""
    from sglang.kernels.ops.attention.dsv4.topk import plan_topk_v2, topk_transform_paged_v2

    plan = plan_topk_v2(lengths)
    return lambda: topk_transform_paged_v2(scores, lengths, page_table, tokens, page_size, plan)
