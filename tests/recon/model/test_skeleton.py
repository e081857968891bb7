"""Parameters computed from configurations, against what the models' publishers say of them."""

import pytest

from appliance.recon.model.configuration import shape_of
from appliance.recon.model.skeleton import skeleton
from tests.helpers.checkpoints import llama_config, moe_config, v4_config

LLAMA_8B = llama_config(
    num_hidden_layers=32,
    hidden_size=4096,
    intermediate_size=14336,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    vocab_size=128256,
)
QWEN3_30B = moe_config() | {
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "moe_intermediate_size": 768,
    "vocab_size": 151936,
}
V3 = llama_config(
    model_type="deepseek_v3",
    num_hidden_layers=61,
    hidden_size=7168,
    intermediate_size=18432,
    num_attention_heads=128,
    num_key_value_heads=128,
    head_dim=None,
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_routed_experts=256,
    n_shared_experts=1,
    num_experts_per_tok=8,
    moe_intermediate_size=2048,
    first_k_dense_replace=3,
    vocab_size=129280,
)


def weights(config: dict) -> int:
    modules = skeleton(shape_of(config, "config.json"))
    return sum(module.weights for module in modules)


@pytest.mark.parametrize(
    "config, billions", [(LLAMA_8B, 8.03), (QWEN3_30B, 30.5), (V3, 671.0), (v4_config(num_nextn_predict_layers=0), 291)]
)
def test_sizes_that_publishers_state(config, billions):
    assert weights(config) / 1e9 == pytest.approx(billions, rel=0.002)


def test_mtp_layers_come_on_top():
    assert weights(V3 | {"num_nextn_predict_layers": 1}) - weights(V3) == pytest.approx(11.5e9, rel=0.02)
    names = [module.name for module in skeleton(shape_of(V3 | {"num_nextn_predict_layers": 1}, "config.json"))]
    assert any(name.startswith("model.layers.61.") for name in names)


def test_a_head_that_is_the_embedding_is_not_counted_twice():
    assert weights(LLAMA_8B) - weights(LLAMA_8B | {"tie_word_embeddings": True}) == 128256 * 4096


@pytest.mark.parametrize("absent", [{"model_type": "novel"}, {"vocab_size": None}, {"intermediate_size": None}])
def test_what_is_not_known_is_not_guessed(absent):
    assert skeleton(shape_of(LLAMA_8B | absent, "config.json")) is None
