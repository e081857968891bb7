import pytest

from appliance.bench.profile.experts import expert_load
from appliance.bench.profile.experts_child import counts_of, load_of
from appliance.documents import ExpertLoad
from appliance.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("sglang")


@pytest.fixture
def dump(tmp_path):
    """Write a dump as SGLang's recorder does (mode stat), and return its path."""

    def write(counts, **changes):
        path = tmp_path / "expert_distribution_recorder_1.5.pt"
        counts = torch.tensor(counts, dtype=torch.int32)
        torch.save({"rank": 0, "logical_count": counts, "average_utilization_rate_over_window": None} | changes, path)
        return path

    return write


def load(path, ranks, counted_by=1) -> ExpertLoad:
    """As the child process reads it, in this process: importing the engine takes seconds."""
    return ExpertLoad.model_validate(load_of(path, counted_by, ranks))


def placed(found, name: str, ranks: int):
    return next(one for one in found.placements if one.name.startswith(name) and one.ranks == ranks)


def test_the_busiest_rank_and_what_placements_would_give(dump):
    # one layer, four experts; 0 and 1 are hot and lie on one rank. The buffer's other places were never used.
    found = load(dump([[[8, 8, 0, 0]]] * 4 + [[[0, 0, 0, 0]]] * 3), [2])
    assert (found.passes, found.evaluated_passes, found.fitted_on_same) == (4, 2, False)
    contiguous = placed(found, "EP", 2)
    assert (contiguous.busiest_rank_share, contiguous.balancedness, contiguous.slowdown) == (1.0, 0.5, 2.0)
    assert placed(found, "EPLB, no", 2).slowdown == 1.0
    assert placed(found, "TP", 2).busiest_rank_share == 0.5
    (layer,) = found.layers
    assert (layer.busiest_expert, layer.busiest_share, layer.even_share, layer.experts_used) == (0, 0.5, 0.25, 2)


def test_one_hot_expert_is_helped_by_redundant_ones_only(dump):
    found = load(dump([[[16, 0, 0, 0]]] * 4), [2])
    assert placed(found, "EPLB, no", 2).slowdown == 2.0
    assert placed(found, "EPLB, 4", 2).slowdown < 1.5


def test_eplb_is_judged_by_passes_that_it_was_not_fitted_to(dump):
    # what was hot in the earlier passes is cold in the later: a placement fitted to the past does not help
    found = load(dump([[[8, 0, 8, 0]]] * 3 + [[[8, 8, 0, 0]]] * 3), [2])
    assert placed(found, "EPLB, no", 2).slowdown >= 1.0 and found.evaluated_passes == 3
    same = load(dump([[[8, 8, 0, 0]]]), [2])
    assert same.fitted_on_same and same.evaluated_passes == 1


def test_larger_batches_use_more_experts_and_give_each_more(dump):
    found = load(dump([[[1, 1, 0, 0]], [[0, 0, 1, 1]]] * 4), [2])
    one, two = found.batches[0], found.batches[1]
    assert (one.experts_used, one.assignments_per_used_expert, one.balancedness) == (2.0, 1.0, 0.5)
    assert (two.experts_used, two.assignments_per_used_expert, two.balancedness) == (4.0, 1.0, 1.0)
    assert found.batches[-1].passes == 8


def test_what_several_ranks_counted_is_counted_once(dump):
    assert load(dump([[[4, 4, 0, 0]]] * 2), [2], counted_by=4).batches[0].assignments == 2.0


def message(path, ranks=()) -> str:
    with pytest.raises(InputError) as error:
        expert_load(path, list(ranks))
    assert "\n" not in str(error.value) and "Traceback" not in str(error.value)
    return str(error.value)


def test_a_child_process_reads_the_same(dump):
    path = dump([[[3, 1, 0, 0]]] * 4)
    assert expert_load(path, []) == load(path, [])
    assert {one.ranks for one in load(path, []).placements} == {2, 4}


def test_what_cannot_be_placed_is_refused_in_one_line(dump, tmp_path):
    assert "no such file" in message(tmp_path / "absent.pt")
    assert "4 experts do not divide among 3 ranks" in message(dump([[[1, 1, 1, 1]]]), [3])


def test_what_is_no_dump_is_refused(dump, tmp_path):
    def refusal(path) -> str:
        with pytest.raises(SystemExit) as error:
            counts_of(path)
        return str(error.value)

    odd = tmp_path / "odd.pt"
    for content in (b"", b"PK\x03\x04rest", b"\x80\x04K\x01."):
        odd.write_bytes(content)
        assert "expected" in refusal(odd)
    assert "no pass was recorded" in refusal(dump([[[0, 0]]]))
    assert "expected --expert-distribution-recorder-mode stat" in refusal(dump([[[1, 1]]], records=[]))
    assert "no logical_count" in refusal(dump([[1, 1]]))
    assert "empty or negative" in refusal(dump([[[-1, 1]]]))
