"""Any configuration, index or header is reported or refused in one line: no other exception, whatever the bytes."""

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import InputError
from appliance.recon.model.checkpoint import Checkpoint, Shard, parse_object, read_index
from appliance.recon.model.folder import read_folder
from appliance.recon.model.report import report_on
from appliance.recon.safetensors_header import TensorInfo
from tests.helpers import checkpoints as made

QUANTIZATION = {
    "quant_method": "compressed-tensors",
    "quant_algo": "NVFP4",
    "format": "pack-quantized",
    "weight_block_size": [128, 128],
    "activation_scheme": "dynamic",
    "bits": 4,
    "group_size": 128,
    "ignore": ["lm_head", "re:.*mlp.*", "model.layers.1*"],
    "modules_to_not_convert": ["gate"],
    "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    "quantized_layers": {"lm_head": {"quant_algo": "FP8", "group_size": 16}},
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "format": "x",
            "weights": {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group"},
            "input_activations": {"num_bits": 8, "type": "float", "dynamic": True},
        }
    },
}
CONFIGURATIONS = [
    made.llama_config(rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}),
    made.moe_config(layer_types=["linear_attention", "full_attention"], sliding_window=128),
    made.v4_config(num_hidden_layers=2, compress_ratios=[4, 128, 0]),
    made.llama_config(model_type="nemotron_h", hybrid_override_pattern="M*", n_routed_experts=4, mamba_num_heads=2),
    made.llama_config(
        model_type="kimi_k3", linear_attn_config={"full_attn_layers": [2]}, kv_lora_rank=8, n_routed_experts=2
    ),
    {"architectures": ["X"], "text_config": made.moe_config(), "model_type": "qwen3_5_moe"},
]
METHODS = ["fp8", "compressed-tensors", "modelopt", "gptq", "awq", "mxfp4", "novel", None]

scalars = st.none() | st.booleans() | st.integers(-3, 300) | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@st.composite
def spoilt(draw, data):
    """`data` with some values, at any depth, replaced by anything."""
    if isinstance(data, dict):
        return {key: draw(spoilt(value)) for key, value in data.items()}
    if isinstance(data, list):
        return [draw(spoilt(value)) for value in data] if draw(st.booleans()) else data
    return draw(values) if draw(st.integers(0, 9)) == 0 else data


@st.composite
def configurations(draw):
    config = dict(draw(st.sampled_from(CONFIGURATIONS)))
    config["quantization_config"] = QUANTIZATION | {"quant_method": draw(st.sampled_from(METHODS))}
    config = draw(spoilt(config))
    for key in draw(st.lists(st.sampled_from(sorted(config)), max_size=2)):
        config[key] = draw(values)
    return config


names = st.lists(
    st.sampled_from(["model", "layers", "0", "1", "7", "mtp", "mlp", "experts", "attn", "q_proj", "weight", "scale"]),
    min_size=1,
    max_size=7,
).map(".".join)
tensors = st.dictionaries(
    names | st.text(max_size=20),
    st.builds(
        TensorInfo,
        st.sampled_from(["BF16", "F8_E4M3", "U8", "I8", "I32", "F8_E8M0", "F32", "novel"]),
        st.lists(st.integers(0, 300), max_size=4).map(tuple),
        st.just(0),
        st.integers(0, 10**6),
    ),
    max_size=12,
)


@settings(max_examples=400, deadline=None)
@given(configurations(), values | st.fixed_dictionaries({"quantization": spoilt(QUANTIZATION)}), tensors)
def test_any_configuration_and_any_tensors_are_reported_or_refused(config, quant_file, found):
    shards = [Shard("model.safetensors", 0, tensors=found)] if found else []
    checkpoint = Checkpoint(
        path="/models/m-NVFP4-MTP",
        origin="folder",
        config=config,
        quant_file=quant_file if isinstance(quant_file, dict) else None,
        shards=shards,
    )
    try:
        report = report_on(checkpoint)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert type(report).parse(report.to_json(), where="report") is not None


@settings(deadline=None)
@given(st.binary(max_size=300) | values.map(json.dumps).map(str.encode))
def test_any_bytes_of_a_json_file_are_read_or_refused(content):
    with suppress(InputError):
        read_index(parse_object(content, "index"), "index")


@settings(deadline=None)
@given(spoilt({"metadata": {"total_size": 5}, "weight_map": {"a": "b", "c": "d"}}))
def test_any_index_is_read_or_refused(index):
    with suppress(InputError):
        read_index(index, "index")


@pytest.mark.parametrize("file", ["config.json", "hf_quant_config.json", "model.safetensors.index.json"])
@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=100))
def test_any_bytes_in_any_file_of_a_folder(tmp_path_factory, file, content):
    folder = Path(tmp_path_factory.getbasetemp() / "any-bytes")
    made.write_checkpoint(folder, made.moe_config(), {"lm_head.weight": ("BF16", [4, 4])})
    (folder / file).write_bytes(content)
    try:
        with suppress(InputError):
            report_on(read_folder(folder))
    finally:
        (folder / file).unlink()


def test_time_grows_with_the_number_of_tensors_and_no_faster():
    def seconds(layers: int) -> float:
        config = made.v4_config(num_hidden_layers=layers, n_routed_experts=64)
        header = {
            name: TensorInfo(dtype, tuple(shape), 0, 0)
            for name, (dtype, shape) in made.v4_tensors(layers=layers, experts=64).items()
        }
        checkpoint = Checkpoint("/m", "folder", config, shards=[Shard("a", 0, tensors=header)])
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            report_on(checkpoint)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(80) < 16 * seconds(10)
