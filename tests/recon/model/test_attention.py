"""KV cache sizes against figures worked out by hand from the formulas."""

import pytest

from appliance.recon.model.attention import attention_of, kv_cache_of
from appliance.recon.model.configuration import shape_of
from tests.helpers.checkpoints import llama_config, v4_config

MLA = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
DSA = MLA | {"index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64}
GATED_DELTA = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def kv(**changes):
    return kv_cache_of(shape_of(llama_config(**changes), "config.json"), None)


def kind(**changes) -> str:
    return attention_of(shape_of(llama_config(**changes), "config.json")).kind


def test_kinds():
    assert kind() == "GQA"
    assert kind(num_key_value_heads=8) == "MHA"
    assert kind(num_key_value_heads=1) == "MQA"
    assert kind(**MLA) == "MLA"
    assert kind(**DSA) == "DSA"
    assert attention_of(shape_of(v4_config(), "config.json")).kind == "V4-compressed"


def test_grouped_query():
    assert kv().bytes_per_token == {"bf16": 2 * 2 * 32 * 2 * 2, "fp8": 2 * 2 * 32 * 2}
    assert not kv().replicated


def test_values_of_another_width():
    assert kv(v_head_dim=16).bytes_per_token["bf16"] == 2 * (32 + 16) * 2 * 2


def test_a_latent_row_whatever_the_number_of_heads():
    found = kv(num_hidden_layers=61, num_attention_heads=128, num_key_value_heads=128, head_dim=None, **MLA)
    assert found.bytes_per_token == {"bf16": 61 * 576 * 2, "fp8": 61 * 576}
    assert found.replicated


def test_sparse_attention_adds_the_indexers_keys():
    """In float8 a row is 512 + 4 scales of 4 bytes + 64 * 2 = 656 bytes; the indexer's key is 128 + 4."""
    assert kv(**DSA).bytes_per_token == {"bf16": 2 * (1152 + 132), "fp8": 2 * (656 + 132)}


def test_compressed_attention():
    """Rows of 584 bytes: 21 layers keep one for 4 tokens, with a key of 132 bytes, 20 layers one for 128."""
    found = kv_cache_of(shape_of(v4_config(), "config.json"), None)
    assert found.bytes_per_token == {"fp8": 21 * (584 + 132) / 4 + 20 * 584 / 128}
    assert found.bytes_per_sequence == {"fp8": 43 * 128 * 584}


def test_layers_that_share_rows_are_counted_once():
    config = v4_config(num_hidden_layers=6, compress_ratios=[0, 2, 2, 1, 1, 1], kv_source_layer_ids=[1, 3])
    found = kv_cache_of(shape_of(config, "config.json"), None)
    assert found.bytes_per_token == {"fp8": (584 + 68) / 2 + (584 + 68)}


def test_sliding_windows_are_a_size_a_sequence():
    found = kv(sliding_window=128, layer_types=["sliding_attention", "full_attention"])
    assert found.bytes_per_token["bf16"] == 2 * 2 * 32 * 2
    assert found.bytes_per_sequence["bf16"] == 128 * 2 * 2 * 32 * 2
    assert kv(sliding_window=128, use_sliding_window=False).bytes_per_sequence == {}


def test_linear_layers_keep_a_state_a_sequence():
    found = kv(layer_types=["linear_attention", "full_attention"], **GATED_DELTA)
    state = 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2
    assert found.bytes_per_sequence == {"bf16": state, "fp8": state}


def test_mamba_layers():
    sizes = {"mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}
    found = kv(model_type="nemotron_h", hybrid_override_pattern="M*", **sizes)
    assert found.bytes_per_sequence["bf16"] == 4 * 64 * 64 * 128 + 2 * (64 * 64 + 2 * 8 * 128) * 3


def test_kimi_counts_its_layers_from_one():
    linear = {"full_attn_layers": [2], "kda_layers": [1], "num_heads": 8, "head_dim": 32, "short_conv_kernel_size": 4}
    shape = shape_of(llama_config(linear_attn_config=linear, **MLA), "config.json")
    assert shape.kinds == ("linear", "full")
    assert kv_cache_of(shape, None).bytes_per_sequence["fp8"] == 4 * 8 * 32 * 32 + 2 * 3 * 8 * 32 * 3


@pytest.mark.parametrize("absent", ["num_attention_heads", "num_hidden_layers"])
def test_what_the_configuration_does_not_tell_is_null(absent):
    assert kv(**{absent: None}) is None


def test_a_size_that_a_formula_needs_is_not_guessed():
    assert kv(kv_lora_rank=512) is None
