"""Launches of the indexer's kernels for compute-sanitizer: `compute-sanitizer --tool memcheck python sanitize.py`."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "pkgs" / "kernels"))

from appliance_kernels.indexer import paged_mqa_logits, prepare, reference  # noqa: E402
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
torch.cuda.synchronize()
print("launches done")
