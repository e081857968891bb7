"""The float64 reference against loops over single tokens, in plain Python."""

import math

import torch
from appliance_kernels import layout, reference
from appliance_kernels.cases import random_cache, random_case


def by_hand(case, row, head):
    """Weighted sum over the valid tokens of one row and head."""
    q = case["q"][row, 0, head].double()
    keys = []
    for cache, indices, length in (
        (case["k_cache"], case["indices"], case["topk_length"]),
        (case["extra_k_cache"], case["extra_indices"], case["extra_topk_length"]),
    ):
        for token in indices[row, 0, : int(length[row])].tolist():
            if 0 <= token < cache.shape[0] * cache.shape[1]:
                keys.append(layout.read(cache, torch.tensor([token]))[0].double())
    if not keys:
        return torch.zeros(512, dtype=torch.float64), -math.inf
    weights = [math.exp(float(q @ k) / math.sqrt(512)) for k in keys]
    total = sum(weights) + math.exp(float(case["attn_sink"][head]))
    return sum(w / total * k for w, k in zip(weights, keys, strict=True)), math.log(sum(weights))


def test_reference_is_the_plain_sum():
    generator = torch.Generator().manual_seed(2)
    case = random_case(3, 8, random_cache(4, 64, generator), 20, random_cache(16, 2, generator), 9, generator=generator)
    case["indices"][0, 0, 3], case["indices"][1, 0, :5], case["extra_indices"][1, 0, 2] = -1, 7, 32
    case["topk_length"][1], case["extra_topk_length"][1] = 11, 3
    case["topk_length"][2] = case["extra_topk_length"][2] = 0
    out, lse = reference.sparse_mla_decode(**case)
    for row in range(3):
        for head in (0, 7):
            want, want_lse = by_hand(case, row, head)
            torch.testing.assert_close(out[row, 0, head], want, rtol=1e-12, atol=1e-12)
            assert math.isclose(lse[row, head, 0], want_lse, rel_tol=1e-12) or lse[row, head, 0] == want_lse


def test_infinite_sinks():
    generator = torch.Generator().manual_seed(4)
    case = random_case(1, 8, random_cache(1, 64, generator), 16, generator=generator)
    case["attn_sink"] = torch.tensor([math.inf, -math.inf] * 4)
    out, lse = reference.sparse_mla_decode(**case)
    without, _ = reference.sparse_mla_decode(**(case | {"attn_sink": None}))
    assert (out[0, 0, ::2] == 0).all() and lse.isfinite().all()
    torch.testing.assert_close(out[0, 0, 1::2], without[0, 0, 1::2])
