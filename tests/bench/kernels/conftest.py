import pytest

from appliance.documents import KernelBench


def times(median: float) -> dict:
    return {"median": median, "p10": median * 0.9, "p90": median * 1.2, "minimum": median * 0.8, "repetitions": 50}


def case(batch: int, context: int, **medians: float | str) -> dict:
    """A case of the document; a text in place of a time is why there is none."""
    kernels = {
        name: {"failed": value} if isinstance(value, str)
        else {"us": times(value), "relative_error": 1e-3, "captured": name != "slow"}
        for name, value in medians.items()
    }  # fmt: skip
    return {
        "operation": "indexer_logits", "shape": {"batch": batch, "context": context}, "bytes": 4_000_000,
        "blocks": 132, "blocks_at_once": 132, "kernels": kernels,
    }  # fmt: skip


@pytest.fixture
def document() -> dict:
    """A run as the benchmark writes it."""
    return {
        "kind": "KernelBench", "schema_version": 1, "date": "2026-12-01T00:00:00+00:00", "command": "bench",
        "gpu": {
            "name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132, "driver": "580.1",
            "copy_bytes_per_s": 4e12, "empty_graph_us": times(3.3),
        },
        "cuda": "13.0", "python": "3.12.3", "packages": {"torch": "2.11.0", "sglang": None},
        "library_sha256": "0" * 64, "repetitions": 50, "method": "words",
        "left_out": {"indexer_logits": {"DeepGEMM": "needs sm_90"}},
        "cases": [
            case(1, 1024, appliance=5.0, stock=50.0, slow=7.5),
            case(64, 1024, appliance=20.0, stock=400.0, slow="OutOfMemoryError: too large"),
            case(1, 16384, appliance=8.0, stock=90.0, slow=9.0),
        ],
    }  # fmt: skip


@pytest.fixture
def bench(document) -> KernelBench:
    return KernelBench.model_validate(document)
