"""The top-k kernel against a stable sort, on a GPU: what is chosen and in which order, exactly."""

import math

import pytest
import torch
from appliance_kernels.indexer import paged_topk, prepare, reference, topk, topk_transform
from appliance_kernels.indexer.cases import random_cache, random_case

PAGE = 64
UNTOUCHED = -77


@pytest.fixture(scope="module", autouse=True)
def device(gpu):
    prepare(gpu)
    return gpu


def run(scores, lengths, k=512, page_size=PAGE, stride=0):
    """Positions and tokens, into poisoned outputs with `stride` untouched columns beside them."""
    rows, width = scores.shape
    generator = torch.Generator(scores.device).manual_seed(1)
    columns = -(-width // page_size)
    table = torch.randint(0, 9000, (rows, columns), dtype=torch.int32, device=scores.device, generator=generator)
    lengths = torch.as_tensor(lengths, dtype=torch.int32, device=scores.device)
    out = [torch.full((rows, k + stride), UNTOUCHED, dtype=torch.int32, device=scores.device) for _ in range(2)]
    topk_transform(scores, lengths, table, out[0][:, :k], page_size, out[1][:, :k])
    assert all((o[:, k:] == UNTOUCHED).all() for o in out)
    want = reference.topk_positions(scores, lengths, k)
    torch.testing.assert_close(out[1][:, :k], want, rtol=0, atol=0)
    torch.testing.assert_close(out[0][:, :k], reference.tokens_of(want, table, page_size), rtol=0, atol=0)
    return want


def normal(rows, width, seed=0):
    device = torch.device("cuda", torch.cuda.current_device())
    return torch.randn(rows, width, device=device, generator=torch.Generator(device).manual_seed(seed))


@pytest.mark.parametrize("length", [1, 2, 511, 512, 513, 1000, 8191, 8192, 8193, 16384, 16385, 50_000, 131_072])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_lengths_and_batches(rows, length):
    run(normal(rows, length), [length] * rows)


def test_a_million_columns():
    run(normal(2, 2**20, 5), [2**20, 2**20 - 3])


@pytest.mark.parametrize("k", [1, 2, 64, 511, 1024, 2048])
def test_other_k(k):
    run(normal(4, 40_000, k), [40_000, k, k + 1, 0], k)


def test_lengths_of_nothing_and_out_of_range():
    run(normal(5, 3000), [0, -4, 3000, 5000, 1])


@pytest.mark.parametrize("kinds", [1, 2, 3, 100, 5000])
@pytest.mark.parametrize("width", [6000, 100_000])
def test_equal_scores_go_by_column(kinds, width):
    """Few different values: more equal ones than are sorted, so that counting goes on into the columns."""
    scores = (normal(3, width, kinds) * kinds).remainder(kinds).floor()
    run(scores, [width, width - 1, 5000])


def test_nearly_equal_scores():
    """All share their first 20 bits."""
    scores = 1.0 + normal(2, 300_000, 8).abs().clamp_max(4) * 1e-4
    run(scores, [300_000, 299_999])


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.0, -0.0])
def test_rows_of_one_value(value):
    run(torch.full((2, 70_001), value, device="cuda"), [70_001, 600])


def test_special_values():
    scores = normal(4, 20_000, 3)
    codes = torch.tensor([math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0, 1e-45, -1e-45], device="cuda")
    where = torch.rand(4, 20_000, device="cuda", generator=torch.Generator("cuda").manual_seed(3)) < 0.01
    which = torch.randint(0, 8, (4, 20_000), device="cuda", generator=torch.Generator("cuda").manual_seed(4))
    run(torch.where(where, codes[which], scores), [20_000, 700, 512, 19_999])


def test_the_best_come_last():
    """A bound from the first columns must not hide the later ones; and ascending is the worst order for it."""
    run(torch.arange(400_000, device="cuda").float().view(1, -1), [400_000])
    run(-torch.arange(400_000, device="cuda").float().view(1, -1), [400_000])


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_rows_that_do_not_start_at_16_bytes(offset):
    wide = normal(3, 30_011, offset)
    run(wide[:, offset : offset + 30_000], [30_000, 29_997, 515])


@pytest.mark.parametrize("page_size", [1, 2, 64, 256])
def test_page_sizes_and_strided_outputs(page_size):
    run(normal(3, 5000), [5000, 600, 3], page_size=page_size, stride=5)


def test_pages_below_zero_and_a_short_table_give_minus_one():
    scores, lengths = normal(2, 4000), torch.tensor([4000, 200], dtype=torch.int32, device="cuda")
    table = torch.arange(40, dtype=torch.int32, device="cuda").expand(2, 40).clone()
    table[:, 2] = -1
    tokens = torch.full((2, 512), UNTOUCHED, dtype=torch.int32, device="cuda")
    topk_transform(scores, lengths, table, tokens, PAGE)
    want = reference.tokens_of(reference.topk_positions(scores, lengths, 512), table, PAGE)
    assert torch.equal(tokens, want) and (want == -1).any()


def test_positions_alone():
    scores, lengths = normal(2, 4000), torch.tensor([4000, 5], dtype=torch.int32, device="cuda")
    positions = torch.empty(2, 512, dtype=torch.int32, device="cuda")
    topk_transform(scores, lengths, positions=positions)
    assert torch.equal(positions, reference.topk_positions(scores, lengths, 512))


@pytest.mark.parametrize("blocks", [1, 2, 4, 8, 16])
def test_every_way_to_share_a_row(device, monkeypatch, blocks):
    if blocks > topk._limits(device)[1]:
        pytest.skip("the device has no such clusters")
    monkeypatch.setattr(topk, "blocks_of_row", lambda *_: blocks)
    lengths = [200_000, 8192, 8193, 513, 20_000, 512, 0]
    run(normal(7, 200_000, blocks), lengths)
    run(normal(7, 200_000, blocks).round(), lengths)


@pytest.mark.parametrize("round_", range(20))
def test_fuzz(seed, round_):
    generator = torch.Generator().manual_seed(seed + round_)

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    rows, width, k = number(1, 70), number(1, 60_000), number(1, 1024)
    scores = normal(rows, width, round_)
    if number(0, 1):
        scores = (scores * number(1, 50)).round()
    lengths = torch.randint(0, width + 1, (rows,), generator=generator)
    run(scores, lengths, k, page_size=2 ** number(0, 8))


def test_captured_in_a_graph_with_other_content_later():
    scores, lengths = normal(3, 90_000), torch.tensor([90_000, 100, 0], dtype=torch.int32, device="cuda")
    positions = torch.empty(3, 512, dtype=torch.int32, device="cuda")
    topk_transform(scores, lengths, positions=positions)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        topk_transform(scores, lengths, positions=positions)
    for new_lengths in ([0, 90_000, 77_777], [513, 8193, 40_000]):
        scores.copy_(normal(3, 90_000, new_lengths[0]))
        lengths.copy_(torch.tensor(new_lengths))
        positions.fill_(UNTOUCHED)
        graph.replay()
        assert torch.equal(positions, reference.topk_positions(scores, lengths, 512))


def test_no_memory_is_taken():
    scores, lengths = normal(4, 100_000), torch.full((4,), 100_000, dtype=torch.int32, device="cuda")
    positions = torch.empty(4, 512, dtype=torch.int32, device="cuda")
    topk_transform(scores, lengths, positions=positions)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    topk_transform(scores, lengths, positions=positions)
    assert torch.cuda.max_memory_allocated() == before


@pytest.mark.parametrize("rows_at_once", [None, 2])
def test_logits_and_their_best(device, monkeypatch, rows_at_once):
    generator = torch.Generator(device).manual_seed(6)
    lengths, width = [30_000, 100, 0, 29_999, 513], 30_000
    case = random_case(lengths, random_cache(700, generator), width, generator)
    if rows_at_once:
        monkeypatch.setattr(topk, "SCRATCH_LOGITS", rows_at_once * width)
    tokens = torch.full((5, 512), UNTOUCHED, dtype=torch.int32, device=device)
    positions = tokens.clone()
    paged_topk(**case, tokens=tokens, positions=positions)
    logits = reference.paged_mqa_logits(**case)
    want = reference.topk_positions(logits, case["lengths"], 512)
    assert torch.equal(positions < 0, want < 0)
    assert torch.equal(tokens, reference.tokens_of(positions, case["page_table"], PAGE))
    for row in range(5):  # fp32 sums may swap neighbours; the chosen logits must be as good
        if lengths[row] > 512:
            got, best = (logits[row][p[row].long()] for p in (positions, want))
            assert positions[row].unique().numel() == 512
            torch.testing.assert_close(got, best, rtol=1e-5, atol=1e-4)
