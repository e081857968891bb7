"""Small synthetic checkpoints with real safetensors headers; their data is holes, so that size costs nothing."""

import hashlib
import json
from pathlib import Path

from appliance.recon.model.checkpoint import CONFIG, INDEX
from appliance.recon.safetensors_header import BITS, LENGTH_BYTES

Tensors = dict[str, tuple[str, list[int]]]
"""Type and shape by name."""


def write_safetensors(path: Path, tensors: Tensors) -> None:
    """A whole safetensors file whose data is a hole."""
    header, offset = {}, 0
    for name, (dtype, shape) in tensors.items():
        count = 1
        for size in shape:
            count *= size
        length = count * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + length]}
        offset += length
    raw = json.dumps(header, separators=(",", ":")).encode()
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(LENGTH_BYTES, "little") + raw)
        file.truncate(LENGTH_BYTES + len(raw) + offset)


def write_checkpoint(folder: Path, config: dict, tensors: Tensors, shards: int = 1) -> Path:
    """A model folder: configuration, `shards` weight files and, where there are several, the index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config))
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    names = list(tensors)
    share = -(-len(names) // shards)
    weight_map = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        mine = names[number * share : (number + 1) * share]
        write_safetensors(folder / file, {name: tensors[name] for name in mine})
        weight_map |= dict.fromkeys(mine, file)
    size = sum(total_bytes({name: tensors[name]}) for name in names)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": weight_map}))
    return folder


def total_bytes(tensors: Tensors) -> int:
    """Bytes of the tensors' data."""
    total = 0
    for dtype, shape in tensors.values():
        count = 1
        for size in shape:
            count *= size
        total += count * BITS[dtype] // 8
    return total


def llama_config(**changes) -> dict:
    """A tiny Llama: 2 layers, 256 wide, 8 heads of which 2 for K and V."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "num_hidden_layers": 2,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 4096,
        "vocab_size": 1000,
    } | changes


def moe_config(**changes) -> dict:
    """A tiny mixture of experts in the manner of Qwen3: 4 experts, top 2, 512 wide."""
    return llama_config(
        architectures=["Qwen3MoeForCausalLM"],
        model_type="qwen3_moe",
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=512,
        **changes,
    )


LINEAR = {
    "self_attn.q_proj": (256, 256),
    "self_attn.k_proj": (64, 256),
    "self_attn.v_proj": (64, 256),
    "self_attn.o_proj": (256, 256),
}
EXPERT = {"gate_proj": (512, 256), "up_proj": (512, 256), "down_proj": (256, 512)}


def moe_tensors(attention, experts, layers: int = 2) -> Tensors:
    """Tensors of moe_config(); `attention` and `experts` are schemes below: (module, rows, columns) -> tensors."""
    tensors: Tensors = {
        "model.embed_tokens.weight": ("BF16", [1000, 256]),
        "lm_head.weight": ("BF16", [1000, 256]),
        "model.norm.weight": ("BF16", [256]),
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        tensors[f"{prefix}.input_layernorm.weight"] = ("BF16", [256])
        tensors[f"{prefix}.mlp.gate.weight"] = ("BF16", [4, 256])
        for name, (rows, columns) in LINEAR.items():
            tensors |= attention(f"{prefix}.{name}", rows, columns)
        for expert in range(4):
            for name, (rows, columns) in EXPERT.items():
                tensors |= experts(f"{prefix}.mlp.experts.{expert}.{name}", rows, columns)
    return tensors


def plain(module: str, rows: int, columns: int) -> Tensors:
    return {f"{module}.weight": ("BF16", [rows, columns])}


def fp8_block(module: str, rows: int, columns: int) -> Tensors:
    scales = [-(-rows // 128), -(-columns // 128)]
    return {f"{module}.weight": ("F8_E4M3", [rows, columns]), f"{module}.weight_scale_inv": ("F32", scales)}


def fp8_tensor(module: str, rows: int, columns: int) -> Tensors:
    scales = {f"{module}.weight_scale": ("F32", []), f"{module}.input_scale": ("F32", [])}
    return {f"{module}.weight": ("F8_E4M3", [rows, columns])} | scales


def fp8_channel(module: str, rows: int, columns: int) -> Tensors:
    return {f"{module}.weight": ("F8_E4M3", [rows, columns]), f"{module}.weight_scale": ("BF16", [rows, 1])}


def mxfp8(module: str, rows: int, columns: int) -> Tensors:
    return {f"{module}.weight": ("F8_E4M3", [rows, columns]), f"{module}.weight_scale": ("U8", [rows, columns // 32])}


def mxfp4(module: str, rows: int, columns: int) -> Tensors:
    return {f"{module}.weight": ("I8", [rows, columns // 2]), f"{module}.scale": ("F8_E8M0", [rows, columns // 32])}


def nvfp4(module: str, rows: int, columns: int) -> Tensors:
    return {
        f"{module}.weight": ("U8", [rows, columns // 2]),
        f"{module}.weight_scale": ("F8_E4M3", [rows, columns // 16]),
        f"{module}.weight_scale_2": ("F32", []),
        f"{module}.input_scale": ("F32", []),
    }


def nvfp4_packed(module: str, rows: int, columns: int) -> Tensors:
    return {
        f"{module}.weight_packed": ("U8", [rows, columns // 2]),
        f"{module}.weight_scale": ("F8_E4M3", [rows, columns // 16]),
        f"{module}.weight_global_scale": ("F32", [1]),
        f"{module}.input_global_scale": ("F32", [1]),
    }


def int4_packed(module: str, rows: int, columns: int) -> Tensors:
    return {
        f"{module}.weight_packed": ("I32", [rows, columns // 8]),
        f"{module}.weight_scale": ("BF16", [rows, columns // 128]),
        f"{module}.weight_shape": ("I64", [2]),
    }


def int8_channel(module: str, rows: int, columns: int) -> Tensors:
    return {f"{module}.weight": ("I8", [rows, columns]), f"{module}.weight_scale": ("BF16", [rows, 1])}


def gptq(module: str, rows: int, columns: int) -> Tensors:
    groups = columns // 128
    return {
        f"{module}.qweight": ("I32", [columns // 8, rows]),
        f"{module}.qzeros": ("I32", [groups, rows // 8]),
        f"{module}.scales": ("F16", [groups, rows]),
        f"{module}.g_idx": ("I32", [columns]),
    }


def awq(module: str, rows: int, columns: int) -> Tensors:
    groups = columns // 128
    return {
        f"{module}.qweight": ("I32", [columns, rows // 8]),
        f"{module}.qzeros": ("I32", [groups, rows // 8]),
        f"{module}.scales": ("F16", [groups, rows]),
    }


def v4_config(**changes) -> dict:
    """The sizes of a V4-Flash: 43 layers, 256 experts."""
    return {
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "torch_dtype": "bfloat16",
        "expert_dtype": "fp4",
        "hidden_size": 4096,
        "head_dim": 512,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "index_topk": 512,
        "max_position_embeddings": 1048576,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "num_experts_per_tok": 6,
        "num_hidden_layers": 43,
        "num_key_value_heads": 1,
        "num_nextn_predict_layers": 1,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "q_lora_rank": 1024,
        "qk_rope_head_dim": 64,
        "sliding_window": 128,
        "vocab_size": 129280,
        "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
        "quantization_config": {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "scale_fmt": "ue8m0",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
        },
    } | changes


def v4_tensors(layers: int = 43, experts: int = 256, stages: int = 1) -> Tensors:
    """Tensors as a V4 checkpoint names them: fp8 blocks with E8M0 scales, mxfp4 experts, MTP stages."""
    tensors: Tensors = {"embed.weight": ("BF16", [129280, 4096]), "head.weight": ("BF16", [129280, 4096])}
    prefixes = [f"layers.{layer}" for layer in range(layers)] + [f"mtp.{stage}" for stage in range(stages)]
    for prefix in prefixes:
        for name, rows, columns in V4_ATTENTION:
            scales = [-(-rows // 128), columns // 128]
            tensors[f"{prefix}.attn.{name}.weight"] = ("F8_E4M3", [rows, columns])
            tensors[f"{prefix}.attn.{name}.scale"] = ("F8_E8M0", scales)
        tensors[f"{prefix}.attn.compressor.wkv.weight"] = ("BF16", [1024, 4096])
        tensors[f"{prefix}.attn_norm.weight"] = ("F32", [4096])
        tensors[f"{prefix}.ffn.gate.weight"] = ("BF16", [experts, 4096])
        for holder in [f"experts.{expert}" for expert in range(experts)]:
            for name, rows, columns in V4_EXPERT:
                tensors |= mxfp4(f"{prefix}.ffn.{holder}.{name}", rows, columns)
        for name, rows, columns in V4_EXPERT:
            tensors[f"{prefix}.ffn.shared_experts.{name}.weight"] = ("F8_E4M3", [rows, columns])
            tensors[f"{prefix}.ffn.shared_experts.{name}.scale"] = ("F8_E8M0", [rows // 128, columns // 128])
    return tensors


V4_ATTENTION = [
    ("wq_a", 1024, 4096),
    ("wq_b", 32768, 1024),
    ("wkv", 512, 4096),
    ("wo_a", 8192, 4096),
    ("wo_b", 4096, 8192),
]
V4_EXPERT = [("w1", 2048, 4096), ("w3", 2048, 4096), ("w2", 4096, 2048)]


def sha256(path: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
