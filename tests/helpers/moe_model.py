"""A tiny mixture of experts (Qwen3 MoE in shape) of random weights, made on the spot. It knows nothing."""

import json
from pathlib import Path

from appliance.demo.model import BOS, EOS, VOCAB, write_tokenizer

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, TOP_K, WIDTH, CONTEXT = 2, 128, 4, 2, 32, 8, 2, 64, 2048
SEED = 20261201


def write_moe_model(folder: Path) -> None:
    """Write configuration, tokenizer and weights (float32) into `folder`, which is made."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(configuration(), indent=2))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": BOS, "eos_token_id": EOS}))
    write_tokenizer(folder)
    random = np.random.Generator(np.random.PCG64(SEED))

    def matrix(rows: int, columns: int):
        return (random.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    ones = np.ones(HIDDEN, dtype=np.float32)
    tensors = {
        "model.embed_tokens.weight": random.standard_normal((VOCAB, HIDDEN)).astype(np.float32),
        "model.norm.weight": ones,
        "lm_head.weight": matrix(VOCAB, HIDDEN),
    }
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        tensors |= {
            f"{name}.input_layernorm.weight": ones,
            f"{name}.post_attention_layernorm.weight": ones,
            f"{name}.self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN),
            f"{name}.self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{name}.self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{name}.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM),
            f"{name}.self_attn.q_norm.weight": np.ones(HEAD_DIM, dtype=np.float32),
            f"{name}.self_attn.k_norm.weight": np.ones(HEAD_DIM, dtype=np.float32),
            f"{name}.mlp.gate.weight": matrix(EXPERTS, HIDDEN),
        }
        for expert in range(EXPERTS):
            tensors |= {
                f"{name}.mlp.experts.{expert}.gate_proj.weight": matrix(WIDTH, HIDDEN),
                f"{name}.mlp.experts.{expert}.up_proj.weight": matrix(WIDTH, HIDDEN),
                f"{name}.mlp.experts.{expert}.down_proj.weight": matrix(HIDDEN, WIDTH),
            }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def configuration() -> dict:
    """The model's config.json."""
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "dtype": "float32",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": WIDTH,
        "moe_intermediate_size": WIDTH,
        "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": EOS,
    }
