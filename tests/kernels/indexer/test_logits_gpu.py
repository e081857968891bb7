"""The kernel against the float64 reference, on a GPU."""

import math

import pytest
import torch
from appliance_kernels.indexer import layout, logits, paged_mqa_logits, prepare, reference
from appliance_kernels.indexer.cases import random_cache, random_case

# Sums of 64 heads in fp32: far below what the bf16 arithmetic of the engine's fallback leaves (about 3e-3).
RELATIVE_ERROR = 1e-5
UNTOUCHED = 12345.0


@pytest.fixture(scope="module")
def cache(gpu):
    prepare(gpu)
    return random_cache(4096, torch.Generator(gpu).manual_seed(1))


def make(cache, lengths, width=None, seed=0):
    generator = torch.Generator(cache.device).manual_seed(seed)
    return random_case(lengths, cache, width or max(lengths), generator)


def check(case: dict) -> None:
    """Outputs are poisoned first: what is not written is seen, and so is what is written too much."""
    rows, width = case["q"].shape[0], case["width"]
    out = torch.full((rows, width), UNTOUCHED, device=case["q"].device)
    assert paged_mqa_logits(**case, out=out) is out
    compare(out, reference.paged_mqa_logits(**case), case)


def compare(out, want, case) -> None:
    limit = min(case["width"], case["page_table"].shape[1] * 64)
    inside = torch.arange(out.shape[1], device=out.device) < case["lengths"].view(-1, 1).clamp(0, limit)
    assert (out[~inside] == UNTOUCHED).all(), "columns at or beyond the length are not written"
    assert torch.equal(out.isnan() & inside, want.isnan() & inside)
    assert torch.equal(out[inside].isinf(), want[inside].isinf())
    use = inside & want.isfinite()
    for row in range(out.shape[0]):  # no row may hide behind the others
        got, expected = out[row][use[row]].double(), want[row][use[row]]
        error = (got - expected).norm() / expected.norm().clamp_min(1e-30)
        assert error < RELATIVE_ERROR or not len(got), f"row {row}: relative error {error:.2e}"


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 127, 1000, 1024, 16384, 131072])
@pytest.mark.parametrize("rows", [1, 2, 64])
def test_lengths_and_batches(cache, rows, length):
    check(make(cache, [length] * rows) if rows * length <= 2**20 else make(cache, [length] * 8))


def test_a_million_tokens(cache):
    check(make(cache, [2**20 - 7, 3], seed=3))


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_unlike_length(cache, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = int(torch.randint(1, 65, (), generator=generator))
    lengths = torch.randint(0, 3000, (rows,), generator=generator)
    lengths[torch.rand(rows, generator=generator) < 0.3] = 0
    check(make(cache, lengths.tolist(), 3000, seed))


def test_nothing_at_all(cache):
    check(make(cache, [0, 0, 0], 100))


def test_many_rows_are_several_launches(cache):
    check(make(cache, [n % 130 for n in range(logits.ROWS_OF_A_LAUNCH + 37)], 130))


def test_lengths_beyond_the_columns_or_the_table_or_below_zero_are_cut(cache):
    case = make(cache, [1000, 1000, -5], 777)
    check(case)
    case["page_table"] = case["page_table"][:, :9].contiguous()
    check(case)


def test_pages_outside_the_cache_give_minus_infinity(cache):
    case = make(cache, [1000, 64], 1000)
    case["page_table"][0, 3], case["page_table"][0, 15], case["page_table"][1, 0] = -1, cache.shape[0], 2**31 - 1
    check(case)
    assert (paged_mqa_logits(**case)[1, :64] == -math.inf).all()


def test_strided_arguments(gpu):
    generator = torch.Generator(gpu).manual_seed(9)
    padded = random_cache(64, generator, page_stride=layout.PAGE_BYTES + 144)
    case = random_case([500, 33, 640], padded, 640, generator)
    case["q"] = case["q"].unsqueeze(1)
    case["lengths"] = case["lengths"].view(3, 1)
    wide = torch.zeros(3, 40, dtype=torch.int32, device=gpu)
    wide[:, 5 : 5 + case["page_table"].shape[1]] = case["page_table"]
    case["page_table"] = wide[:, 5:]
    case["cache"] = case["cache"].view(torch.float8_e4m3fn)
    buffer = torch.full((3, 1001), UNTOUCHED, device=gpu)
    paged_mqa_logits(**case, out=buffer[:, 100:740])
    want = reference.paged_mqa_logits(**case)
    compare(buffer[:, 100:740].clone(), want, case)
    assert (buffer[:, :100] == UNTOUCHED).all() and (buffer[:, 740:] == UNTOUCHED).all()


def test_scales_and_values_at_their_ends(gpu):
    generator = torch.Generator(gpu).manual_seed(11)
    cache = random_cache(4, generator)
    _, scales = layout.regions(cache)
    codes = torch.tensor([0.0, 1e-38, 1e30, float("inf"), float("nan"), 1e-45], device=gpu)
    picked = codes[torch.randint(0, 6, (4, 64), device=gpu, generator=generator)]
    scales[:] = picked.view(torch.uint8).view(4, 64, 4)
    case = random_case([256], cache, 256, generator)
    case["page_table"][0] = torch.arange(4, device=gpu)
    out, want = paged_mqa_logits(**case), reference.paged_mqa_logits(**case)
    assert torch.equal(out.isnan(), want.isnan()) and torch.equal(out.isinf(), want.float().isinf())
    use = want.float().isfinite() & (want.abs() > 1e-30)
    torch.testing.assert_close(out[use].double(), want[use], rtol=1e-4, atol=0)


def test_nan_in_a_key_or_a_query_is_nan_in_the_logit(cache, gpu):
    local = cache[:64].clone()
    values, _ = layout.regions(local)
    values.view(torch.uint8)[5, 7, 100] = 0x7F
    case = make(local, [128, 128], seed=4)
    case["page_table"][:] = torch.tensor([[5, 6], [7, 8]], device=gpu)
    case["q"].view(torch.uint8)[1, 63, 127] = 0xFF
    out = paged_mqa_logits(**case)
    assert out.isnan().nonzero().tolist() == [[0, 7], *([1, n] for n in range(128))]


def test_largest_magnitudes_do_not_overflow(gpu):
    cache = layout.empty_cache(1, gpu)
    layout.write(cache, torch.full((64, 128), 448.0, device=gpu).to(torch.float8_e4m3fn), torch.ones(64, device=gpu))
    case = make(cache, [64])
    case["q"] = torch.full((1, 64, 128), 448.0, device=gpu).to(torch.float8_e4m3fn)
    case["weights"].fill_(1)
    assert (paged_mqa_logits(**case) == 448.0 * 448 * 128 * 64).all()


def test_cache_beyond_4_gib(gpu):
    pages = 2**20
    small = random_cache(3, torch.Generator(gpu).manual_seed(2))
    big = layout.empty_cache(pages, gpu)
    places = torch.tensor([0, pages // 2 + 1, pages - 1], device=gpu)
    big[places] = small
    case = make(small, [192, 100])
    case["page_table"][:] = torch.tensor([0, 1, 2], device=gpu)
    want = reference.paged_mqa_logits(**case)
    case |= {"cache": big, "page_table": places.int().expand(2, 3).contiguous()}
    out = torch.full((2, 192), UNTOUCHED, device=gpu)
    paged_mqa_logits(**case, out=out)
    compare(out, want, case)


def test_graph_replay_with_other_content(cache):
    case = make(cache, [5000] * 7)
    paged_mqa_logits(**case)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = paged_mqa_logits(**case)
    for seed, lengths in enumerate([[5000] * 7, [0] * 7, [1, 0, 0, 4999, 64, 17, 0], [0] * 6 + [5000]]):
        other = make(cache, lengths, 5000, seed=100 + seed)
        for name in ("q", "weights", "lengths", "page_table"):
            case[name].copy_(other[name])
        out.fill_(UNTOUCHED)
        graph.replay()
        compare(out, reference.paged_mqa_logits(**case), case)


def test_same_bits_every_time_and_in_every_company(cache):
    """A token's logit depends on nothing but its own row: not on the order of work, nor on the other rows."""
    case = make(cache, [9000, 2500, 1])
    first = paged_mqa_logits(**case)
    alone = {
        name: value[:1] if name in ("q", "weights", "lengths", "page_table") else value for name, value in case.items()
    }
    assert torch.equal(paged_mqa_logits(**alone)[0, :9000], first[0, :9000])
    for _ in range(20):
        again = paged_mqa_logits(**case)
        for row, length in enumerate([9000, 2500, 1]):
            assert torch.equal(again[row, :length], first[row, :length])


def test_no_memory_but_the_result(cache):
    case = make(cache, [100000] * 4)
    paged_mqa_logits(**case)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = paged_mqa_logits(**case)
    assert torch.cuda.max_memory_allocated() - before <= out.numel() * 4 + 512
