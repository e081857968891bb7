"""Whole reports of small synthetic checkpoints, one for each way of storing weights."""

import pytest

from appliance.recon.model.folder import read_folder
from appliance.recon.model.report import report_on
from tests.helpers import checkpoints as made


def report_of(folder, config, tensors, **wanted):
    return report_on(read_folder(made.write_checkpoint(folder, config, tensors)), **wanted)


def found(report, component: str) -> list[tuple]:
    return [
        (entry.format, entry.bits, entry.group, entry.activations)
        for entry in report.quantisation
        if entry.component == component and entry.basis == "tensors"
    ]


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}


def group(weights: dict, inputs: dict | None, form: str) -> dict:
    entry = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "format": form}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": entry}, "ignore": ["lm_head"]}


W4A16 = group({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}, None, "pack-quantized")
W8A8 = group(
    {"num_bits": 8, "type": "int", "strategy": "channel"},
    {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True},
    "int-quantized",
)
FP8_DYNAMIC = group(
    {"num_bits": 8, "type": "float", "strategy": "channel"},
    {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
    "float-quantized",
)
NVFP4 = group(
    {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
    {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "dynamic": "local"},
    "nvfp4-pack-quantized",
)
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "*.mlp.gate"]}


@pytest.mark.parametrize(
    "scheme, declaration, expected",
    [
        (made.plain, None, ("bf16", 16, None, "bf16")),
        (made.fp8_block, FP8, ("fp8", 8, "128x128", "fp8 dynamic")),
        (made.fp8_tensor, {"quant_method": "fp8", "activation_scheme": "static"}, ("fp8", 8, "tensor", "fp8 static")),
        (made.fp8_channel, FP8_DYNAMIC, ("fp8", 8, "channel", "fp8 dynamic")),
        (made.nvfp4, MODELOPT, ("nvfp4", 4, "16", "nvfp4 static")),
        (made.nvfp4_packed, NVFP4, ("nvfp4", 4, "16", "nvfp4 static")),
        (made.int4_packed, W4A16, ("int4", 4, "128", "bf16")),
        (made.int8_channel, W8A8, ("int8", 8, "channel", "int8 dynamic")),
        (made.gptq, GPTQ, ("int4", 4, "128", "fp16")),
        (made.awq, AWQ, ("int4", 4, "128", "fp16")),
    ],
)
def test_tensors_and_configuration_agree(tmp_path, scheme, declaration, expected):
    config = made.moe_config() | ({"quantization_config": declaration} if declaration else {})
    report = report_of(tmp_path, config, made.moe_tensors(scheme, scheme))
    assert found(report, "routed_experts") == [expected]
    assert found(report, "attention") == [expected]
    assert found(report, "head") == found(report, "router") == [("bf16", 16, None, "bf16")]
    assert not any("the configuration says" in remark for remark in report.remarks)
    # logical weights, whatever they are packed into: two layers, embedding, head, norms
    attention = sum(rows * columns for rows, columns in made.LINEAR.values())
    experts = 4 * sum(rows * columns for rows, columns in made.EXPERT.values())
    assert report.parameters == 2 * (attention + experts + 4 * 256 + 256) + 2 * 1000 * 256 + 256
    assert report.parameters_active == report.parameters - 2 * experts // 2
    assert report.integrity.problems == []


@pytest.mark.parametrize("scheme, expected", [(made.mxfp4, ("mxfp4", "32")), (made.mxfp8, ("mxfp8", "32"))])
def test_micro_scaling_formats_need_no_configuration(tmp_path, scheme, expected):
    report = report_of(tmp_path, made.moe_config(), made.moe_tensors(made.plain, scheme))
    assert [entry[0::2][:2] for entry in found(report, "routed_experts")] == [expected]


def test_awq_and_gptq_are_told_apart_by_the_side_that_is_packed(tmp_path):
    """A name or configuration that says the other is contradicted by the shapes."""
    config = made.moe_config(quantization_config=AWQ)
    report = report_of(tmp_path, config, made.moe_tensors(made.gptq, made.gptq), claim="awq")
    assert {entry.packing for entry in report.quantisation if entry.basis == "tensors"} >= {"gptq"}
    (claim,) = report.claims
    assert claim.verdict == "differs"


def test_a_component_in_two_formats_has_two_entries(tmp_path):
    tensors = made.moe_tensors(made.plain, made.nvfp4)
    for layer in (0, 1):
        del tensors[f"model.layers.{layer}.self_attn.o_proj.weight"]
        tensors |= made.nvfp4(f"model.layers.{layer}.self_attn.o_proj", 256, 256)
    report = report_of(tmp_path, made.moe_config(), tensors)
    assert {form for form, *_ in found(report, "attention")} == {"bf16", "nvfp4"}


def test_tensors_that_are_not_what_the_configuration_says_are_named(tmp_path):
    config = made.moe_config(quantization_config=FP8)
    report = report_of(tmp_path, config, made.moe_tensors(made.plain, made.fp8_block))
    (remark,) = [remark for remark in report.remarks if "the configuration says" in remark]
    assert remark == (
        "attention: tensors are bf16, the configuration says fp8 128x128 (model.layers.0.self_attn.q_proj)"
    )


def test_a_checkpoint_without_weights_is_reported_from_its_configuration(tmp_path):
    made.write_checkpoint(tmp_path, made.moe_config(quantization_config=FP8), {})
    (tmp_path / "model.safetensors").unlink()
    report = report_on(read_folder(tmp_path))
    assert report.integrity is None
    assert "computed from config.json" in report.sources["weight_bytes"]
    assert any("no tensor headers at hand" in remark for remark in report.remarks)
    assert {entry.basis for entry in report.quantisation} == {"configuration"}
    with_weights = report_of(tmp_path, made.moe_config(), made.moe_tensors(made.fp8_block, made.fp8_block))
    norms = 2 * 256 + 256
    assert report.parameters == with_weights.parameters - norms


def test_an_unknown_model_type_without_weights_is_not_guessed(tmp_path):
    made.write_checkpoint(tmp_path, made.llama_config(model_type="novel", quantization_config=W4A16), {})
    (tmp_path / "model.safetensors").unlink()
    report = report_on(read_folder(tmp_path))
    assert (report.parameters, report.weight_bytes, report.ranks) == (None, None, [])
    assert [(entry.component, entry.format, entry.group) for entry in report.quantisation] == [
        ("all_linear", "int4", "128")
    ]


def test_a_v4_checkpoint(tmp_path):
    config = made.v4_config(num_hidden_layers=3, n_routed_experts=8, compress_ratios=[0, 4, 128, 0, 0, 0])
    report = report_of(tmp_path, config, made.v4_tensors(layers=3, experts=8, stages=3))
    assert found(report, "routed_experts") == [("mxfp4", 4, "32", None)]
    assert found(report, "attention") == [("fp8", 8, "128x128", "fp8 dynamic")]
    assert found(report, "compressor") == [("bf16", 16, None, "bf16")]
    assert (report.mtp.count, report.mtp.basis, report.mtp.declared) == (3, "tensor names", 1)
    assert list(report.mtp.tensors) == ["mtp.0", "mtp.1", "mtp.2"]
    assert "memory sized from the configuration is short by 2" in report.remarks[-1]
    assert not any("the configuration says" in remark for remark in report.remarks)


def test_kv_scales_without_a_declaration_are_remarked(tmp_path):
    tensors = made.moe_tensors(made.plain, made.plain) | {"model.layers.0.self_attn.k_proj.k_scale": ("F32", [])}
    report = report_of(tmp_path, made.moe_config(), tensors)
    assert any("carry KV cache scales" in remark for remark in report.remarks)


def test_an_index_whose_size_is_not_that_of_the_headers(tmp_path):
    import json

    made.write_checkpoint(tmp_path, made.moe_config(), made.moe_tensors(made.plain, made.plain), shards=3)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"metadata": {"total_size": 1}}))
    report = report_on(read_folder(tmp_path))
    assert any(remark.startswith("the index says 1 bytes, the headers ") for remark in report.remarks)


def test_a_type_of_tomorrow_is_remarked_and_no_fault(tmp_path):
    made.write_checkpoint(tmp_path, made.moe_config(), {"lm_head.weight": ("U8", [4, 4])})
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"U8"', b'"U9"'))
    report = report_on(read_folder(tmp_path))
    assert report.integrity.problems == []
    assert any("types that are not known here: U9" in remark for remark in report.remarks)


def test_names_that_a_broken_rename_left(tmp_path):
    tensors = made.moe_tensors(made.plain, made.plain)
    tensors["model.layers.0.mlp.shared_experts.960.w2.weight.weight"] = ("BF16", [4, 4])
    report = report_of(tmp_path, made.moe_config(), tensors)
    assert any("a broken rename" in remark for remark in report.remarks)


@pytest.mark.parametrize(
    "rope, scaled",
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}, 16384),
        ({"type": "linear", "factor": 2}, 8192),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 512}, None),
        ({"rope_type": "default"}, None),
        ({"rope_type": ["yarn"], "factor": "x"}, None),
        (None, None),
    ],
)
def test_context_that_rope_scaling_reaches(tmp_path, rope, scaled):
    config = made.llama_config(rope_scaling=rope)
    report = report_of(tmp_path, config, made.moe_tensors(made.plain, made.plain))
    assert (report.context_length, report.context_length_scaled) == (4096, scaled)
