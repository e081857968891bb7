"""The float64 reference against loops over single tokens and heads, and against the engine's torch fallback."""

import math

import pytest
import torch
from appliance_kernels.indexer import layout, reference
from appliance_kernels.indexer.cases import random_cache, random_case
from appliance_kernels.indexer.stock import sglang_torch


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(5)
    return random_case([130, 0, 64, 5, 256], random_cache(9, generator), 192, generator)


def test_reference_is_the_plain_sum(case):
    logits = reference.paged_mqa_logits(**case)
    for row, token in [(0, 0), (0, 129), (2, 63), (3, 4), (4, 191)]:
        flat = int(case["page_table"][row, token // 64]) * 64 + token % 64
        key, scale = layout.read(case["cache"], torch.tensor([flat]))
        total = 0.0
        for head in range(64):
            dot = sum(float(a) * float(b) for a, b in zip(case["q"][row, head].float(), key[0].float(), strict=True))
            total += float(case["weights"][row, head]) * max(0.0, dot)
        assert math.isclose(float(logits[row, token]), total * float(scale), rel_tol=1e-12, abs_tol=1e-9)


def test_beyond_the_length_and_outside_the_cache_there_is_nothing(case):
    case["page_table"][0, 1] = 9
    case["page_table"][2, 0] = -1
    logits = reference.paged_mqa_logits(**case)
    assert logits[0].isfinite().nonzero().flatten().tolist() == [*range(64), 128, 129]
    assert (logits[1:3] == -math.inf).all() and logits[4].isfinite().all()


def test_the_engines_torch_fallback_says_the_same(case):
    got, want = sglang_torch(**case), reference.paged_mqa_logits(**case)
    assert torch.equal(got.isinf(), want.isinf())
    finite = want.isfinite()
    assert (got.double() - want)[finite].norm() / want[finite].norm() < 1e-2


def test_the_best_columns_go_by_score_then_by_column():
    inf, nan = float("inf"), float("nan")
    scores = torch.tensor([[1.0, 3.0, -0.0, 0.0, 3.0, -inf], [nan, inf, 5.0, 5.0, 7.0, 8.0], [9.0] * 6])
    positions = reference.topk_positions(scores, torch.tensor([6, 5, 2]), 4)
    assert positions.tolist() == [[1, 4, 0, 2], [0, 1, 4, 2], [0, 1, -1, -1]]
    table = torch.tensor([[7, 2, 1], [-1, 3, 0], [4, 4, 4]], dtype=torch.int32)
    tokens = reference.tokens_of(positions, table, 2)
    assert tokens.tolist() == [[15, 2, 14, 4], [-1, -1, 0, 6], [8, 9, -1, -1]]
