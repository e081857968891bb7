"""The C interface of libappliance_kernels.so through ctypes.

ctypes, because the interface then is a handful of plain C structs: no torch or tvm-ffi version is compiled in, and one
library serves every torch that can tell a pointer and a stream.
"""

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path

ABI_VERSION = 1
CLUSTER_SIZES = 5  # 1, 2, 4, 8, 16 blocks
PATH_VARIABLE = "APPLIANCE_KERNELS_LIBRARY"


class Source(Structure):
    """SparseMlaSource of sparse_mla_decode.h."""

    _fields_ = [
        ("cache", c_void_p), ("indices", c_void_p), ("indices_stride", c_int64),
        ("lengths", c_void_p), ("width", c_int32), ("capacity", c_int32), ("log2_page_size", c_int32),
        ("page_stride16", c_uint32),
    ]  # fmt: skip


class DecodeParams(Structure):
    """SparseMlaDecodeParams of sparse_mla_decode.h."""

    _fields_ = [
        ("q", c_void_p), ("q_batch_stride", c_int64), ("q_head_stride", c_int64), ("out", c_void_p), ("lse", c_void_p),
        ("sink", c_void_p), ("partial", c_void_p), ("partial_ml", c_void_p), ("counters", c_void_p),
        ("source", Source * 2), ("softmax_scale", c_float), ("batch", c_int32), ("heads", c_int32),
        ("cluster", c_int32), ("splits", c_int32),
    ]  # fmt: skip


class PrefillParams(Structure):
    """SparseMlaPrefillParams of sparse_mla_prefill.h."""

    _fields_ = [
        ("q", c_void_p), ("q_batch_stride", c_int64), ("q_head_stride", c_int64), ("out", c_void_p), ("lse", c_void_p),
        ("sink", c_void_p), ("source", Source * 2), ("softmax_scale", c_float), ("rows", c_int32), ("heads", c_int32),
    ]  # fmt: skip


class IndexerLogitsParams(Structure):
    """IndexerLogitsParams of indexer_logits.h."""

    _fields_ = [
        ("q", c_void_p), ("cache", c_void_p), ("weights", c_void_p), ("lengths", c_void_p), ("page_table", c_void_p),
        ("logits", c_void_p), ("q_stride", c_int64), ("page_stride", c_int64), ("weights_stride", c_int64),
        ("page_table_stride", c_int64), ("logits_stride", c_int64), ("rows", c_int32), ("pages", c_int32),
        ("table_width", c_int32), ("width", c_int32),
    ]  # fmt: skip


class IndexerTopkParams(Structure):
    """IndexerTopkParams of indexer_topk.h."""

    _fields_ = [
        ("scores", c_void_p), ("lengths", c_void_p), ("page_table", c_void_p), ("tokens", c_void_p),
        ("positions", c_void_p), ("scores_stride", c_int64), ("page_table_stride", c_int64), ("tokens_stride", c_int64),
        ("positions_stride", c_int64), ("width", c_int32), ("table_width", c_int32), ("log2_page_size", c_int32),
        ("topk", c_int32), ("rows", c_int32), ("cluster", c_int32),
    ]  # fmt: skip


def path() -> Path:
    """The library file: $APPLIANCE_KERNELS_LIBRARY, else beside this package."""
    return Path(os.environ.get(PATH_VARIABLE) or Path(__file__).parent / "libappliance_kernels.so")


@cache
def load() -> ctypes.CDLL:
    """Loads the library once; OSError says which file is missing or of another version."""
    file = path()
    if not file.exists():
        raise OSError(f"no kernel library at {file}: build it with build.sh, or name it in {PATH_VARIABLE}")
    lib = ctypes.CDLL(str(file))
    try:
        lib.appliance_sparse_mla_decode.argtypes = [POINTER(DecodeParams), c_void_p]
        lib.appliance_sparse_mla_decode_prepare.argtypes = [c_int] + [POINTER(c_int)] * 3
        lib.appliance_sparse_mla_prefill.argtypes = [POINTER(PrefillParams), c_void_p]
        lib.appliance_sparse_mla_prefill_prepare.argtypes = [c_int] + [POINTER(c_int)] * 2
        lib.appliance_indexer_logits.argtypes = [POINTER(IndexerLogitsParams), c_int, c_void_p]
        lib.appliance_indexer_topk.argtypes = [POINTER(IndexerTopkParams), c_void_p]
        lib.appliance_kernels_error_string.restype = c_char_p
    except AttributeError as error:
        raise OSError(f"{file} is of another version than this package: {error}") from None
    if (version := lib.appliance_kernels_abi_version()) != ABI_VERSION:
        raise OSError(f"{file} has interface version {version}, this package needs {ABI_VERSION}")
    return lib


def check(error: int, what: str) -> None:
    if error:
        raise RuntimeError(f"{what}: CUDA error {error}, {load().appliance_kernels_error_string(error).decode()}")


def prepare_decode(heads: int) -> tuple[int, int, tuple[int, ...]]:
    """Heads of a block, tokens of a tile, and how many clusters of 1, 2, 4, 8, 16 blocks the device runs at once."""
    per_block, tile, clusters = c_int(), c_int(), (c_int * CLUSTER_SIZES)()
    error = load().appliance_sparse_mla_decode_prepare(heads, byref(per_block), byref(tile), clusters)
    check(error, "preparing sparse_mla_decode")
    return per_block.value, tile.value, tuple(clusters)


def decode(params: DecodeParams, stream: int) -> None:
    check(load().appliance_sparse_mla_decode(byref(params), stream), "launching sparse_mla_decode")


def prepare_prefill(heads: int) -> tuple[int, int]:
    """Heads of a block, and how many blocks the device runs at once."""
    per_block, blocks = c_int(), c_int()
    error = load().appliance_sparse_mla_prefill_prepare(heads, byref(per_block), byref(blocks))
    check(error, "preparing sparse_mla_prefill")
    return per_block.value, blocks.value


def prefill(params: PrefillParams, stream: int) -> None:
    check(load().appliance_sparse_mla_prefill(byref(params), stream), "launching sparse_mla_prefill")


def prepare_indexer_logits() -> int:
    """How many blocks of the indexer's logits the device runs at once."""
    blocks = c_int()
    check(load().appliance_indexer_logits_prepare(byref(blocks)), "preparing indexer_logits")
    return blocks.value


def indexer_logits(params: IndexerLogitsParams, blocks: int, stream: int) -> None:
    check(load().appliance_indexer_logits(byref(params), blocks, stream), "launching indexer_logits")


def prepare_indexer_topk() -> tuple[int, int]:
    """How many blocks of the indexer's top-k the device runs at once, and the most that can share a row."""
    blocks, cluster = c_int(), c_int()
    check(load().appliance_indexer_topk_prepare(byref(blocks), byref(cluster)), "preparing indexer_topk")
    return blocks.value, cluster.value


def indexer_topk(params: IndexerTopkParams, stream: int) -> None:
    check(load().appliance_indexer_topk(byref(params), stream), "launching indexer_topk")
