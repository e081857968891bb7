import pytest
from appliance_kernels import reference
from appliance_kernels.cases import random_cache, random_case
from appliance_kernels.engine import decode_entry

flash_mla_sm120 = pytest.importorskip(
    "sglang.kernels.ops.attention.flash_mla_sm120", reason="needs SGLang, the engine that is plugged into"
)


@pytest.fixture
def standin_kernel(monkeypatch):
    """In place of our CUDA kernel, which needs a GPU: the float64 reference, on the CPU. Counts its calls."""
    calls = []

    def kernel(**case):
        calls.append(case)
        out, lse = reference.sparse_mla_decode(**case)
        return out.to(case["q"].dtype), lse.float()

    monkeypatch.setattr(decode_entry.appliance_kernels, "sparse_mla_decode", kernel)
    return calls


@pytest.fixture
def stock_on_cpu(monkeypatch):
    """SGLang's own torch fallback, the only one of its backends that runs without a GPU."""
    monkeypatch.setattr(flash_mla_sm120, "_sm120_default_backend", "torch")


@pytest.fixture
def make_call():
    """The keyword arguments with which SGLang 0.5.23 calls its sm_120 decode entry point."""

    def make(batch=2, heads=16, width=128, extra_width=64):
        caches = random_cache(4, 256, generator()), random_cache(8, 64, generator())
        case = random_case(batch, heads, caches[0], width, caches[1], extra_width, generator=generator())
        call = {name: case[name] for name in ("q", "k_cache", "indices", "topk_length", "attn_sink")}
        return call | {
            "head_dim_v": 512, "softmax_scale": 512**-0.5, "extra_k_cache": case.get("extra_k_cache"),
            "extra_indices_in_kvcache": case.get("extra_indices"), "extra_topk_length": case.get("extra_topk_length"),
        }  # fmt: skip

    return make


def generator():
    import torch

    return torch.Generator().manual_seed(7)
