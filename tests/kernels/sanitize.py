"""A few launches of every kernel, for compute-sanitizer: `compute-sanitizer --tool racecheck python sanitize.py`."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "pkgs" / "kernels"))

from appliance_kernels import decode, reference, sparse_mla_prefill  # noqa: E402
from appliance_kernels.cases import random_cache, random_case  # noqa: E402
from appliance_kernels.plan import Plan  # noqa: E402

device = torch.device("cuda", torch.cuda.current_device())
decode.prepare(device)
generator = torch.Generator(device).manual_seed(0)
caches = [random_cache(4, 256, generator), random_cache(16, 64, generator)]
for heads in decode.HEADS:
    for plan in (Plan(1, 1), Plan(1, 2), Plan(4, 1), Plan(8, 2)):
        decode.plan = lambda *_, plan=plan: plan
        case = random_case(2, heads, caches[0], 100, caches[1], 200, generator=generator)
        case["indices"][0, 0, ::5] = -1
        case["extra_topk_length"][1] = 70
        out, _ = decode.sparse_mla_decode(**case)
        want, _ = reference.sparse_mla_decode(**case)
        error = float((out.double() - want).norm() / want.norm())
        assert error < 4e-3, (heads, plan, error)
    case = random_case(5, heads, caches[0], 100, caches[1], 70, generator=generator)
    case["indices"][0, 0, ::5] = -1
    case["extra_topk_length"][1] = 3
    out, _ = sparse_mla_prefill(**case)
    want, _ = reference.sparse_mla_decode(**case)
    error = float((out.double() - want).norm() / want.norm())
    assert error < 4e-3, (heads, "prefill", error)
torch.cuda.synchronize()
print("launches done")
