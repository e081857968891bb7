import pytest

from appliance.documents import ModelReport
from appliance.documents.model import KvCache, RankBytes
from appliance.plan.memory import fits, lacking, rank_memory
from tests.helpers.gpu_machines import v4_flash

GIB = 1024**3
CAPACITY = 97887 * 1024**2


def dense(gib: float, per_token: float = 100_000, context: int = 131072) -> ModelReport:
    """A model of `gib` of weights, split evenly, with one KV head."""
    return ModelReport(
        path="/m",
        architecture="X",
        parameters=1,
        weight_bytes=1,
        context_length=context,
        kv_heads=1,
        kv_cache=KvCache(declared_dtype=None, bytes_per_token={"bf16": per_token}, formula="f"),
        ranks=[RankBytes(tp=tp, ep=1, bytes=int(gib * GIB / tp)) for tp in (1, 2, 4, 8)],
    )


def test_the_parts_add_up():
    memory = rank_memory(v4_flash(), CAPACITY, 4, "decode")
    assert memory.weights + memory.reserve + memory.kv_pool == CAPACITY
    assert memory.pool_tokens == pytest.approx(
        (memory.kv_pool - memory.kv_fixed_bytes) / memory.kv_bytes_per_token, rel=1e-6
    )
    assert memory.context == 1048576 and memory.concurrency == memory.pool_tokens // 1048576
    assert fits(memory, None) and lacking(memory, None) == 0


def test_a_context_that_does_not_fit_is_cut_to_what_does():
    memory = rank_memory(dense(70), CAPACITY, 1, "aggregated")
    assert 2048 < memory.context < 131072 and memory.context % 1024 == 0
    assert memory.longest_context == memory.pool_tokens < memory.context + 1024
    assert memory.concurrency == 1


def test_what_does_not_fit_says_by_how_much():
    memory = rank_memory(dense(90), CAPACITY, 1, "aggregated")
    assert not fits(memory, None)
    assert lacking(memory, None) == 2048 * 100_000 - memory.kv_pool
    wanted = rank_memory(dense(70), CAPACITY, 1, "aggregated", context=131072)
    assert not fits(wanted, 131072)
    assert lacking(wanted, 131072) == int(131072 * 100_000 - wanted.kv_pool)


def test_a_short_model_fits_with_its_own_short_context():
    memory = rank_memory(dense(10, context=512), CAPACITY, 1, "aggregated")
    assert memory.context == 512 and fits(memory, None)


def test_a_rank_count_that_the_report_does_not_have_takes_the_next_smaller_one():
    assert rank_memory(dense(60), CAPACITY, 6, "decode").weights == 15 * GIB


def test_without_sizes_nothing_is_said():
    bare = ModelReport(path="/m", architecture="X", parameters=1, weight_bytes=2)
    assert rank_memory(bare, CAPACITY, 1, "decode") is None
    assert fits(None, 1000)


def test_half_a_gpu_is_half_of_its_memory():
    whole, half = (rank_memory(dense(10), CAPACITY, 1, "decode", share=share) for share in (1.0, 0.5))
    assert half.capacity == CAPACITY // 2
    assert half.kv_pool == whole.kv_pool - (CAPACITY - half.capacity)
