"""SIMULATED traces in the shape that Kineto writes for a GPU: written by hand, nothing in them was measured."""

import gzip
import json
from pathlib import Path

RTX_PRO_6000 = {
    "id": 0, "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "totalGlobalMem": 102000000000,
    "computeMajor": 12, "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 1536,
    "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 188, "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 101376, "sharedMemPerMultiprocessor": 102400,
}  # fmt: skip
SPARSE_DECODE = "_fused_gather_attn_dsv4_dual_scope_kernel"
GEMM = "nvjet_tst_64x64_64x5_2x1_v_bz_TNN"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
UNKNOWN = "made_up_for_this_test"


def kernel(name: str, ts: float, dur: float, correlation: int, blocks: int = 512, **args) -> dict:
    """A kernel's event."""
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
        "args": {
            "device": 0, "context": 1, "stream": 7, "correlation": correlation, "registers per thread": 64,
            "shared memory": 0, "blocks per SM": blocks / 188, "warps per SM": blocks * 4 / 188,
            "grid": [blocks, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 30, **args,
        },
    }  # fmt: skip


def launch(correlation: int, ts: float, dur: float = 5.0) -> dict:
    """The CPU's call that launched the kernel of that correlation."""
    return {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": ts, "dur": dur,
        "args": {"cbid": 211, "correlation": correlation},
    }  # fmt: skip


def decode_step() -> list[dict]:
    """One step: 60 µs of attention in 64 blocks, 20 of GEMM, 10 of NCCL, 5 of an unknown kernel, 5 of a copy.

    Idle: 20 µs for a launch that came late, 5 µs though the launch was made, 10 µs with no launch in the trace.
    """
    copy = {
        "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 230.0,
        "dur": 5.0, "args": {"device": 0, "correlation": 99, "stream": 7, "bytes": 4096},
    }  # fmt: skip
    return [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "user_annotation", "name": "step[DECODE bs=4]", "pid": 9, "tid": 9, "ts": 90.0, "dur": 150},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 90.0, "dur": 3.0, "args": {}},
        launch(1, 90.0), launch(2, 175.0), launch(3, 95.0),
        kernel(SPARSE_DECODE, 100.0, 60.0, 1, blocks=64),
        kernel(GEMM, 180.0, 20.0, 2),
        kernel(ALL_REDUCE, 205.0, 10.0, 3, blocks=16),
        kernel(UNKNOWN, 215.0, 5.0, 3),
        copy,
    ]  # fmt: skip


def trace(events: list[dict], **members) -> dict:
    """A trace around events, labelled as simulated."""
    whole = {
        "schemaVersion": 1, "simulated": True, "deviceProperties": [RTX_PRO_6000],
        "distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4},
    } | members  # fmt: skip
    return whole | {"traceEvents": events, "traceName": "simulated.json"}


def write_trace(path: Path, data: object) -> Path:
    """Write `data` as JSON, compressed where the name ends so."""
    text = json.dumps(data).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
