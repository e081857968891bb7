import pytest

from appliance.recon.model.declared import declared
from appliance.recon.model.names import Place
from tests.helpers.checkpoints import llama_config, moe_config

EXPERT = Place("routed_experts", "experts", None, "routed_experts")
ATTENTION = Place("attention", "split", None, "attention")
MTP_EXPERT = Place("mtp", "experts", "mtp.0", "routed_experts")
HEAD = Place("head", "split", None, "head")
ROUTER = Place("router", "replicated", None, "router")


def said(block: dict | None, quant_file: dict | None = None, **changes):
    config = moe_config(**changes) | ({"quantization_config": block} if block is not None else {})
    return declared(config, {"quantization": quant_file} if quant_file is not None else None)


def test_without_any_declaration_everything_is_the_models_type():
    assert said(None).scheme_of("model.layers.0.self_attn.q_proj", ATTENTION).format == "bf16"
    assert declared(llama_config(dtype="float16"), None).plain.format == "fp16"


@pytest.mark.parametrize("where", ["top", "block", "text"])
def test_expert_dtype_is_found_in_its_three_places(where):
    block = {"quant_method": "fp8", "weight_block_size": [32, 32]}
    config = moe_config(quantization_config=block)
    config["text_config"] = moe_config()
    {"top": config, "block": block, "text": config["text_config"]}[where]["expert_dtype"] = "fp4"
    declaration = declared(config, None)
    assert declaration.scheme_of("layers.0.ffn.experts.0.w1", EXPERT)[:2] == ("mxfp4", "32")
    assert declaration.scheme_of("mtp.0.ffn.experts.0.w1", MTP_EXPERT).format == "mxfp4"
    assert declaration.scheme_of("layers.0.attn.wq_a", ATTENTION)[:2] == ("fp8", "32x32")


def test_without_it_the_same_block_means_float8_experts():
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert said(block).scheme_of("layers.0.ffn.experts.0.w1", EXPERT)[:2] == ("fp8", "128x128")


def test_the_block_may_stand_in_text_config():
    config = llama_config(text_config=moe_config(quantization_config={"quant_method": "fp8"}))
    assert declared(config, None).where == "config.json: text_config.quantization_config"


def test_a_quant_file_alone_is_read_and_remarked():
    declaration = said(None, {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]})
    assert declaration.scheme_of("model.layers.0.self_attn.q_proj", ATTENTION)[:3] == ("nvfp4", "16", "nvfp4 static")
    assert declaration.scheme_of("lm_head", HEAD).format == "bf16"
    assert declaration.scheme_of("model.layers.0.mlp.gate", ROUTER).format == "bf16"
    assert declaration.kv_cache == "fp8"
    assert declaration.remarks == ("config.json holds no quantization_config: only hf_quant_config.json tells",)


def test_a_quant_file_without_exclusions_is_not_believed_beyond_the_experts():
    declaration = said(None, {"quant_algo": "NVFP4"})
    assert declaration.cut
    assert declaration.scheme_of("model.layers.0.mlp.experts.0.up_proj", EXPERT)[:2] == ("nvfp4", None)
    assert declaration.scheme_of("model.layers.0.self_attn.q_proj", ATTENTION).format == "unknown"


def test_listed_layers_decide_and_cover_what_lies_below():
    block = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "layers.0.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16},
            "layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
            "lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        },
    }
    declaration = said(block)
    assert declaration.scheme_of("layers.0.ffn.experts.3.w1", EXPERT)[:2] == ("nvfp4", "16")
    assert declaration.scheme_of("layers.0.self_attn.q_proj", ATTENTION)[:2] == ("fp8", "tensor")
    assert declaration.scheme_of("layers.1.self_attn.q_proj", ATTENTION).format == "bf16"
    assert declaration.scheme_of("lm_head", HEAD)[:3] == ("nvfp4", "16", "bf16")


def test_groups_with_regular_expressions():
    block = {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision",
        "ignore": ["re:.*mtp.*"],
        "config_groups": {
            "group_0": {
                "targets": [r"re:.*attn\.(wq_a|wkv)$"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
                "input_activations": {"num_bits": 8, "type": "float", "dynamic": True},
            },
            "group_1": {
                "targets": [r"re:.*experts\.\d+\.w[123]$"],
                "format": "pack-quantized",
                "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128},
            },
        },
    }
    declaration = said(block)
    assert declaration.scheme_of("layers.0.attn.wkv", ATTENTION)[:3] == ("fp8", "128x128", "fp8 dynamic")
    experts = declaration.scheme_of("layers.0.ffn.experts.3.w1", EXPERT)
    assert experts == ("int4", "128", "bf16", "compressed-tensors pack-quantized")
    assert declaration.scheme_of("mtp.0.ffn.experts.3.w1", MTP_EXPERT).format == "bf16"
    assert declaration.scheme_of("layers.0.attn.wo_b", ATTENTION).format == "bf16"


def test_four_bit_floats_in_groups_of_32_are_mxfp4():
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}
    group = {"targets": ["Linear"], "weights": weights, "format": "mxfp4-pack-quantized"}
    declaration = said({"quant_method": "compressed-tensors", "config_groups": {"group_0": group}})
    assert declaration.scheme_of("model.layers.0.mlp.experts.0.up_proj", EXPERT)[:3] == ("mxfp4", "32", "bf16")


@pytest.mark.parametrize("scheme", ["FP8", {"num_bits": 8, "type": "float", "dynamic": False}])
def test_a_kv_cache_scheme_is_a_name_or_an_object(scheme):
    assert said({"quant_algo": "FP8", "kv_cache_scheme": scheme, "ignore": []}).kv_cache == "fp8"


def test_an_unknown_method_is_said_and_not_guessed():
    declaration = said({"quant_method": "novel"})
    assert declaration.scheme_of("model.layers.0.self_attn.q_proj", ATTENTION).format == "unknown"
    assert "'novel' is not one that is known here" in declaration.remarks[0]


@pytest.mark.parametrize(
    "block, other, words",
    [
        ({"quant_algo": "FP8"}, {"quant_algo": "NVFP4"}, "config.json says FP8, hf_quant_config.json says NVFP4"),
        ({"quant_algo": "FP8"}, {"kv_cache_quant_algo": "FP8"}, "KV cache: config.json says nothing"),
        (
            {"quant_algo": "NVFP4", "ignore": ["lm_head"]},
            {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "a", "b"]},
            "modules left out: 0 only in config.json, 2 only in hf_quant_config.json",
        ),
        (
            {"quantized_layers": {"a": {"quant_algo": "FP8"}}, "quant_algo": "MIXED_PRECISION"},
            {"quantized_layers": {"a": {"quant_algo": "NVFP4"}}, "quant_algo": "MIXED_PRECISION"},
            "first a: FP8 and NVFP4",
        ),
        (
            {
                "config_groups": {
                    "g": {"weights": {"num_bits": 4, "type": "float"}, "input_activations": {"num_bits": 4}},
                    "h": None,
                },
                "quant_algo": "MIXED_PRECISION",
            },
            {"quantized_layers": {"a": {"quant_algo": "W4A16_NVFP4"}}, "quant_algo": "MIXED_PRECISION"},
            "hf_quant_config.json says weight-only",
        ),
    ],
)
def test_files_that_disagree(block, other, words):
    assert any(words in remark for remark in said(block | {"quant_method": "modelopt"}, other).remarks)


def test_files_that_agree():
    block = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"], "kv_cache_scheme": "FP8"}
    other = {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"], "kv_cache_quant_algo": "FP8"}
    assert said(block, other).remarks == ()
