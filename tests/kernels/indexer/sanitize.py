"""Launches of the indexer's kernels for compute-sanitizer: `compute-sanitizer --tool memcheck python sanitize.py`."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "pkgs" / "kernels"))

from appliance_kernels.indexer import paged_mqa_logits, prepare, reference, topk, topk_transform  # noqa: E402
from appliance_kernels.indexer.cases import random_cache, random_case  # noqa: E402

device = torch.device("cuda", torch.cuda.current_device())
prepare(device)
generator = torch.Generator(device).manual_seed(0)
cache = random_cache(50, generator)
for lengths in ([1000, 0, 17, 64, 3000], [1], [0, 0], [130] * 300):
    case = random_case(lengths, cache, max(1, *lengths), generator)
    if lengths[0] == 1000:
        case["page_table"][0, 2] = -1
    out = paged_mqa_logits(**case)
    want = reference.paged_mqa_logits(**case)
    use = want.isfinite()
    if use.any():
        error = float((out[use].double() - want[use]).norm() / want[use].norm())
        assert error < 1e-5, (lengths, error)
for blocks in (1, 2, 8):
    topk.blocks_of_row = lambda *_, blocks=blocks: blocks
    for kinds in (0, 3):  # random scores; few different ones, which take all steps of the search
        scores = torch.randn(3, 40_000, device=device, generator=generator)
        scores = scores if kinds == 0 else (scores * kinds).round()
        lengths = torch.tensor([40_000, 9_000, 100], dtype=torch.int32, device=device)
        table = torch.randint(0, 900, (3, 625), dtype=torch.int32, device=device, generator=generator)
        tokens, positions = torch.empty(2, 3, 512, dtype=torch.int32, device=device)
        topk_transform(scores, lengths, table, tokens, 64, positions)
        want = reference.topk_positions(scores, lengths, 512)
        assert torch.equal(positions, want) and torch.equal(tokens, reference.tokens_of(want, table, 64)), blocks
torch.cuda.synchronize()
print("launches done")
