import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.recon.model.configuration import shape_of
from appliance.recon.model.names import Places, split_role
from tests.helpers.checkpoints import llama_config


def places(**changes) -> Places:
    return Places(shape_of(llama_config(num_hidden_layers=4, **changes), "config.json"))


@pytest.mark.parametrize(
    "name, module, role",
    [
        ("model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj", "weight"),
        ("layers.0.ffn.experts.7.w1.scale", "layers.0.ffn.experts.7.w1", "scale"),
        ("m.weight_scale_inv", "m", "scale"),
        ("m.mlp.experts.gate_up_proj_blocks", "m.mlp.experts.gate_up_proj", "weight"),
        ("m.mlp.experts.gate_up_proj_scales", "m.mlp.experts.gate_up_proj", "scale"),
        ("m.mlp.experts.gate_up_proj_bias", "m.mlp.experts.gate_up_proj_bias", "bias"),
        ("m.mlp.experts.gate_up_proj", "m.mlp.experts.gate_up_proj", "weight"),
        ("layers.0.attn.attn_sink", "layers.0.attn.attn_sink", "weight"),
        ("weight", "weight", "weight"),
    ],
)
def test_module_and_role(name, module, role):
    assert split_role(name) == (module, role)


@pytest.mark.parametrize(
    "module, component, sharding",
    [
        ("model.embed_tokens", "embedding", "split"),
        ("language_model.lm_head", "head", "split"),
        ("head", "head", "split"),
        ("model.layers.1.self_attn.q_proj", "attention", "split"),
        ("model.layers.1.self_attn.k_proj", "attention", "kv_heads"),
        ("model.layers.1.self_attn.kv_a_proj_with_mqa", "attention", "replicated"),
        ("model.layers.1.self_attn.indexer.weights_proj", "indexer", "replicated"),
        ("layers.1.attn.compressor.wkv", "compressor", "replicated"),
        ("layers.1.attn.indexer.compressor.wkv", "indexer", "replicated"),
        ("layers.1.attn.wkv", "attention", "replicated"),
        ("layers.1.attn.wo_a", "attention", "split"),
        ("model.layers.1.linear_attn.in_proj_qkv", "linear_attention", "split"),
        ("model.layers.1.mlp.gate", "router", "replicated"),
        ("model.layers.1.mlp.gate_proj", "dense_mlp", "split"),
        ("model.layers.1.mlp.shared_expert_gate", "router", "replicated"),
        ("model.layers.1.mlp.shared_expert.up_proj", "shared_experts", "split"),
        ("layers.1.ffn.experts.3.w2", "routed_experts", "experts"),
        ("model.layers.1.mlp.experts.gate_up_proj", "routed_experts", "experts"),
        ("model.layers.1.block_sparse_moe.experts.3.w2", "routed_experts", "experts"),
        ("layers.1.engram.embed", "engram", "split"),
        ("visual.blocks.30.attn.qkv", "vision", "replicated"),
        ("vision_tower.encoder.layers.20.self_attn.q_proj", "vision", "replicated"),
        ("model.norm", "other", "replicated"),
    ],
)
def test_where_a_module_belongs(module, component, sharding):
    place = places().of(module)
    assert (place.component, place.sharding, place.mtp) == (component, sharding, None)


@pytest.mark.parametrize(
    "module, layer",
    [
        ("mtp.0.ffn.experts.1.w1", "mtp.0"),
        ("mtp.layers.1.self_attn.q_proj", "mtp.1"),
        ("model.mtp_layers.2.mlp.up_proj", "mtp.2"),
        ("mtp.fc", "mtp"),
        ("model.layers.4.mlp.experts.1.up_proj", "layers.4"),
        ("model.layers.5.eh_proj", "layers.5"),
        ("model.layers.3.mlp.up_proj", None),
        ("vision_tower.encoder.layers.20.mlp.up_proj", None),
        ("model.layers.0.mlp.smtp_proj", None),
    ],
)
def test_mtp_layers_follow_the_last_or_have_a_name_of_their_own(module, layer):
    assert places().of(module).mtp == layer


def test_experts_of_a_layer_share_a_place_that_is_found_once():
    found = places()
    assert found.of("model.layers.1.mlp.experts.0.up_proj") is found.of("model.layers.1.mlp.experts.255.up_proj")
    assert found.of("model.layers.1.mlp.experts.0.up_proj") is not found.of("model.layers.1.mlp.experts.0.q.up_proj")


def test_mixers_are_told_apart_by_the_layer():
    found = places(model_type="nemotron_h", hybrid_override_pattern="M*E-")
    assert [found.of(f"backbone.layers.{layer}.mixer.up_proj").component for layer in range(4)] == [
        "mamba",
        "attention",
        "dense_mlp",
        "dense_mlp",
    ]


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["layers", "0", "9", "mtp", "experts", "mlp", "attn"])).map(".".join)
)
def test_any_name_has_a_place(name):
    module, _ = split_role(name)
    assert places().of(module).component
