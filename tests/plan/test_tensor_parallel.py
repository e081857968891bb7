import pytest

from appliance.documents import ModelReport
from appliance.documents.model import Experts, KvCache, RankBytes
from appliance.plan.tensor_parallel import allowed


def model(heads: int | None, kv_heads: int | None = None, latent: bool = False, **changes) -> ModelReport:
    cache = KvCache(declared_dtype=None, bytes_per_token={"bf16": 1.0}, formula="", replicated=latent)
    return ModelReport(
        path="/m",
        architecture="X",
        parameters=1,
        weight_bytes=2,
        heads=heads,
        kv_heads=kv_heads,
        kv_cache=cache,
        **changes,
    )


@pytest.mark.parametrize(
    "heads, kv_heads, most, size",
    [
        (64, 8, 8, 8),
        (64, 8, 7, 4),
        (64, 8, 3, 2),
        (64, 4, 8, 8),
        (40, 8, 5, 4),
        (40, 40, 5, 4),
        (12, 3, 6, 1),
        (7, 1, 8, 1),
        (96, 96, 3, 2),
        (64, 8, 1, 1),
    ],
)
def test_ranks_divide_heads_and_kv_heads(heads, kv_heads, most, size):
    assert allowed(model(heads, kv_heads), most) == size


def test_latent_caches_have_no_heads_to_divide():
    assert allowed(model(40, 40, latent=True), 5) == 4


def test_ranks_divide_an_experts_width():
    experts = Experts(routed=8, top_k=2, shared=None, width=1028, moe_layers=1, dense_layers=0)
    assert allowed(model(64, 8, experts=experts), 8) == 4


def test_ranks_that_cut_an_experts_blocks_are_avoided():
    remark = "expert width 1536 / 8 is no multiple of the 128 of fp8 128x128: kernels refuse it or pad"
    cut = RankBytes(tp=8, ep=1, bytes=1, remarks=[remark])
    assert allowed(model(64, 4, ranks=[cut]), 8) == 4


def test_a_model_that_does_not_tell_its_heads_gets_a_power_of_two():
    assert allowed(model(None), 7) == 4
