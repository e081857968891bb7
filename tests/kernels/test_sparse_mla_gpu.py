"""Decode and prefill against the float64 reference, on a GPU."""

import math

import pytest
import torch
from appliance_kernels import decode as module
from appliance_kernels import reference, sparse_mla_decode, sparse_mla_prefill
from appliance_kernels.cases import random_cache, random_case
from appliance_kernels.layout import page_bytes
from appliance_kernels.plan import Plan

# bf16 rounding of the output alone gives 1.7e-3, bf16 probabilities about as much again.
RELATIVE_ERROR = 4e-3
LSE_ERROR = 2e-4
HEADS = (8, 16, 32, 64)
KERNELS = {"decode": sparse_mla_decode, "prefill": sparse_mla_prefill}


@pytest.fixture(scope="module")
def caches(gpu):
    generator = torch.Generator(gpu).manual_seed(1)
    return {size: random_cache(4096 // size, size, generator) for size in (2, 64, 256)}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def check(kernel, case: dict) -> None:
    """Outputs are poisoned first, so that what is not written is seen."""
    q = case["q"]
    batch, _, heads, _ = q.shape
    out = torch.full((batch, 1, heads, 512), float("nan"), device=q.device, dtype=torch.bfloat16)
    lse = torch.full((batch, heads, 1), float("nan"), device=q.device)
    kernel(**case, out=out, lse=lse)
    want, want_lse = reference.sparse_mla_decode(**case)
    compare(out, lse, want, want_lse)


def compare(out, lse, want, want_lse) -> None:
    assert torch.equal(out.isnan(), want.isnan())
    got, want = out.double().nan_to_num(), want.nan_to_num()
    error = (got - want).norm() / want.norm().clamp_min(1e-30)
    assert error < RELATIVE_ERROR, f"relative error {error:.2e}"
    rows = (got - want).norm(dim=-1) / want.norm(dim=-1).clamp_min(1e-30)  # no single head may hide
    assert rows.max() < 3 * RELATIVE_ERROR, f"relative error of the worst head {rows.max():.2e}"
    infinite = want_lse.isinf()
    assert torch.equal(lse.double()[infinite], want_lse[infinite])
    torch.testing.assert_close(lse.double()[~infinite], want_lse[~infinite], atol=LSE_ERROR, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7, 8, 16, 31, 32, 64])
def test_batches_and_heads(kernel, caches, batch, heads):
    check(random_case(batch, heads, caches[256], 128, caches[64], 512))


@pytest.mark.parametrize("extra_page", [2, 64])
@pytest.mark.parametrize("extra_width", [0, 1, 31, 32, 33, 128, 2048, 8192])
@pytest.mark.parametrize("heads", HEADS)
def test_extra_cache(kernel, caches, heads, extra_width, extra_page):
    check(random_case(3, heads, caches[256], 128, caches[extra_page], extra_width))


@pytest.mark.parametrize("cluster, splits", [(1, 1), (1, 5), (2, 3), (4, 1), (8, 2), (8, 32), (16, 1), (16, 3)])
@pytest.mark.parametrize("heads", HEADS)
def test_every_way_to_split_gives_the_same(caches, monkeypatch, gpu, heads, cluster, splits):
    if not module._device(gpu, heads).clusters[cluster.bit_length() - 1]:
        pytest.skip(f"this device has no clusters of {cluster}")
    monkeypatch.setattr(module, "plan", lambda *_: Plan(cluster, splits))
    case = random_case(2, heads, caches[256], 128, caches[64], 512)
    case["topk_length"][1], case["extra_topk_length"][1] = 40, 3
    check(sparse_mla_decode, case)
    check(sparse_mla_decode, case)  # the counters are back at zero


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize(
    "lengths", [(0, 0), (0, 512), (128, 0), (1, 1), (127, 511), (33, 65), (128, 512), (1000, 1000)]
)
def test_lengths(kernel, caches, heads, lengths):
    case = random_case(4, heads, caches[256], 128, caches[64], 512)
    case["topk_length"].fill_(lengths[0])
    case["extra_topk_length"].fill_(lengths[1])
    case["topk_length"][2] = 77  # rows of unlike length in one launch
    check(kernel, case)


def test_no_lengths_means_all(kernel, caches):
    case = random_case(2, 16, caches[256], 128, caches[64], 512)
    case["topk_length"] = case["extra_topk_length"] = None
    check(kernel, case)


@pytest.mark.parametrize("heads", HEADS)
def test_nothing_valid_gives_zeros_and_minus_infinity(kernel, caches, heads):
    case = random_case(3, heads, caches[256], 128, caches[64], 512)
    case["indices"][1] = -1
    case["extra_indices"][1] = -1
    out, lse = kernel(**case)
    assert (out[1] == 0).all() and (lse[1] == -math.inf).all()
    check(kernel, case)


@pytest.mark.parametrize("heads", HEADS)
def test_invalid_tokens_anywhere(kernel, caches, heads):
    case = random_case(8, heads, caches[256], 128, caches[64], 512)
    for name in ("indices", "extra_indices"):
        holes = torch.rand(case[name].shape, device=case[name].device) < torch.linspace(
            0, 1, 8, device=case[name].device
        ).view(8, 1, 1)
        case[name].masked_fill_(holes, -1)
    case["indices"][0, 0, :4] = torch.tensor([-1, -2, 4096, 2**31 - 1])  # outside the cache at either end
    check(kernel, case)


@pytest.mark.parametrize("sink", [None, math.inf, -math.inf, 1e30, -1e30, 0.0])
def test_sinks(kernel, caches, sink):
    case = random_case(3, 16, caches[256], 128, caches[64], 512)
    case["indices"][2], case["extra_indices"][2] = -1, -1
    if sink is None:
        case["attn_sink"] = None
    else:
        case["attn_sink"][::2] = sink
    check(kernel, case)


@pytest.mark.parametrize("scale", [0, 1, 31, 32, 120, 127, 200, 247, 248, 254])
def test_scales_at_both_ends(kernel, gpu, scale):
    """Queries are scaled against the keys, so that scores stay moderate and every value counts."""
    generator = torch.Generator(gpu).manual_seed(scale)
    cache = random_cache(8, 64, generator)
    raw = cache.as_strided((8, cache.stride(0)), (cache.stride(0), 1))
    raw[:, 64 * 576 : 64 * 584] = scale
    data = raw[:, : 64 * 576].view(8, 64, 576)
    data[..., :448] &= 0xBF if scale < 240 else 0x8F  # magnitudes up to 1.9 or 0.03: no sum overflows fp32
    data[..., 448:] = torch.randn(8, 64, 64, device=gpu, generator=generator).bfloat16().view(torch.uint8)
    case = random_case(2, 16, cache, 64, generator=generator)
    case["q"][..., :448] = (case["q"][..., :448].double() * 2.0 ** (127 - max(scale, 4)) / 16).bfloat16()
    check(kernel, case)


def test_scale_that_is_nan_and_value_that_is_nan(kernel, gpu):
    generator = torch.Generator(gpu).manual_seed(3)
    cache = random_cache(4, 64, generator)
    raw = cache.as_strided((4, cache.stride(0)), (cache.stride(0), 1))
    raw[0, 64 * 576 + 8 * 5 + 2] = 255
    raw[1, 576 * 7 + 100] = 0x7F
    raw[2, 576 * 9 + 447] = 0xFF
    case = random_case(4, 16, cache, 64, generator=generator)
    case["indices"] %= 64
    case["indices"] += 192  # page 3: clean
    case["indices"][0, 0, 3], case["indices"][1, 0, 63], case["indices"][2, 0, 0] = 5, 64 + 7, 128 + 9
    check(kernel, case)


@pytest.mark.parametrize("page_size", [1, 2, 64, 256, 1024])
def test_page_boundaries_and_padding(kernel, gpu, page_size):
    generator = torch.Generator(gpu).manual_seed(page_size)
    pages = 2048 // page_size
    for stride in (page_bytes(page_size), page_bytes(page_size) + 576, -(-page_size * 584 // 16) * 16 + 16):
        cache = random_cache(pages, page_size, generator, page_stride=stride)
        case = random_case(2, 16, cache, 160, generator=generator)
        first = torch.arange(0, 2048, page_size, device=gpu)[:40]
        edges = torch.stack([first, first + page_size - 1], 1).flatten()
        case["indices"][:, 0, : edges.numel()] = edges.int()
        case["indices"][:, 0, -1] = 2047
        check(kernel, case)


def test_duplicates_count_as_often_as_listed(kernel, caches):
    case = random_case(2, 16, caches[256], 128, caches[64], 512)
    case["indices"][0] = 17
    case["extra_indices"][1, 0, 1::2] = case["extra_indices"][1, 0, ::2]
    check(kernel, case)


def test_strided_queries_and_indices(kernel, caches):
    case = random_case(4, 16, caches[256], 128, caches[64], 512)
    padded = torch.randn(4, 1, 64, 512, device=case["q"].device).bfloat16()
    case["q"] = padded[:, :, 8:24]
    wide = torch.randint(0, 4096, (4, 300), device=case["q"].device, dtype=torch.int32)
    case["indices"] = wide[:, 100:228]
    check(kernel, case)


def test_cache_beyond_4_gib(kernel, gpu):
    pages = 32768
    cache = random_cache(1, 256, torch.Generator(gpu).manual_seed(5))
    stride = cache.stride(0)
    big = torch.empty(pages * stride, dtype=torch.uint8, device=gpu)
    view = big.as_strided((pages, 256, 1, 584), (stride, 584, 584, 1))
    for page in (0, 20000, pages - 1):
        big[page * stride : (page + 1) * stride] = cache.as_strided((stride,), (1,))
    case = random_case(2, 16, view, 96)
    case["indices"][:, 0, :32] = torch.arange(32, device=gpu)
    case["indices"][:, 0, 32:64] = 20000 * 256 + torch.arange(40, 72, device=gpu)
    case["indices"][:, 0, 64:] = (pages - 1) * 256 + torch.arange(224, 256, device=gpu)
    check(kernel, case)


@pytest.mark.parametrize("heads", HEADS)
def test_graph_replay_with_other_content(kernel, caches, heads):
    case = random_case(5, heads, caches[256], 128, caches[64], 2048)
    kernel(**case)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = kernel(**case)
    for seed, lengths in enumerate([(128, 2048), (0, 0), (5, 1), (128, 100), (0, 2048)]):
        other = random_case(5, heads, caches[256], 128, caches[64], 2048,
                            generator=torch.Generator(caches[64].device).manual_seed(100 + seed))  # fmt: skip
        for name in ("q", "indices", "extra_indices", "attn_sink"):
            case[name].copy_(other[name])
        case["topk_length"].fill_(lengths[0])
        case["extra_topk_length"].fill_(lengths[1])
        case["indices"][seed % 5, 0, ::3] = -1
        out.fill_(math.nan)
        lse.fill_(math.nan)
        graph.replay()
        compare(out, lse, *reference.kernel(**case))


def test_same_bits_every_time(kernel, caches):
    """No order of arrival enters the result."""
    case = random_case(3, 16, caches[256], 128, caches[64], 8192)
    first = [t.clone() for t in kernel(**case)]
    for _ in range(50):
        assert all(torch.equal(a, b) for a, b in zip(first, kernel(**case), strict=True))


@pytest.mark.parametrize("round_", range(40))
def test_fuzz(kernel, gpu, caches, seed, round_):
    generator = torch.Generator(gpu).manual_seed(seed * 1000 + round_)

    def below(n):
        return int(torch.randint(0, n, (), generator=generator, device=gpu))

    def one_of(values):
        return values[below(len(values))]

    batch, heads = 1 + below(64), one_of(HEADS)
    width, extra_width = 1 + below(300), one_of([0, 1 + below(64), 1 + below(3000)])
    case = random_case(
        batch, heads, caches[one_of([2, 64, 256])], width, caches[one_of([2, 64])], extra_width, generator=generator
    )
    for name, length, columns in (
        ("indices", "topk_length", width),
        ("extra_indices", "extra_topk_length", extra_width),
    ):
        if columns:
            share = below(11) / 10
            case[name].masked_fill_(torch.rand(case[name].shape, device=gpu, generator=generator) < share, -1)
            case[length].random_(0, columns + 1, generator=generator)
    if below(4) == 0:
        case["attn_sink"] = None
    check(kernel, case)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("rows", [65, 300, 1000])
def test_many_query_tokens(caches, heads, rows):
    case = random_case(rows, heads, caches[256], 128, caches[64], 160)
    case["topk_length"] = torch.arange(rows, device=case["q"].device, dtype=torch.int32) % 129
    check(sparse_mla_prefill, case)


def test_8192_query_tokens(caches):
    case = random_case(8192, 16, caches[256], 128, caches[64], 512)
    case["extra_topk_length"] = torch.arange(8192, device=case["q"].device, dtype=torch.int32) % 513
    out, lse = sparse_mla_prefill(**case)
    per_row = [name for name, t in case.items() if isinstance(t, torch.Tensor) and t.shape[0] == 8192]
    for rows in (slice(0, 64), slice(4000, 4064), slice(8128, 8192)):
        part = case | {name: case[name][rows] for name in per_row}
        compare(out[rows], lse[rows], *reference.sparse_mla_decode(**part))


def test_the_most_query_tokens(caches):
    """65535 rows: offsets of the output beyond 2^31 bytes."""
    case = random_case(65535, 64, caches[256], 3)
    out, lse = sparse_mla_prefill(**case)
    part = case | {name: case[name][-64:] for name in ("q", "indices", "topk_length")}
    compare(out[-64:], lse[-64:], *reference.sparse_mla_decode(**part))
