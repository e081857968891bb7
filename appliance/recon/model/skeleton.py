"""The linear modules that a configuration implies, by name and shape, for when no tensors are at hand.

Shapes follow the public model code (transformers 5.19 models/*/modeling_*.py; SGLang 0.5.23 srt/models/*.py). Norms
and other vectors are left out: they are below 0.1 % of any model. Model types that are not known here give None.
"""

from collections.abc import Iterator
from typing import NamedTuple

from appliance.recon.model.configuration import Shape

V4 = ("deepseek_v4", "deepseek_ref", "deepseek_v41")
MLA = ("deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "kimi_k3", "glm_moe_dsa")
PLAIN = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen2_moe",
    "qwen3_moe",
    "minimax_m2",
    "mimo_v2_flash",
    "gpt_oss",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_text",
    "qwen3_5_moe_text",
)
NEMOTRON = ("nemotron_h",)


class Module(NamedTuple):
    """`count` modules of one shape (the experts of a layer); `name` is that of the first."""

    name: str
    rows: int
    columns: int
    count: int = 1

    @property
    def weights(self) -> int:
        return self.rows * self.columns * self.count


def skeleton(shape: Shape) -> list[Module] | None:
    """The modules of the model, or None where its type is not known or its configuration lacks a size."""
    families = {V4: v4, MLA: latent, PLAIN: plain, NEMOTRON: nemotron}
    family = next((make for types, make in families.items() if shape.model_type in types), None)
    if family is None or not shape.layers or not shape.hidden or not shape.heads or not shape.vocab:
        return None
    try:
        modules = list(family(shape))
    except (TypeError, KeyError, IndexError, ZeroDivisionError):  # a size that this family needs is not there
        return None
    return modules if all(module.rows and module.columns and module.count for module in modules) else None


def embeddings(shape: Shape, embed: str, head: str) -> Iterator[Module]:
    """Input embedding, and the head unless it shares the embedding's weights."""
    yield Module(embed, shape.vocab, shape.hidden)
    if not shape.tied:
        yield Module(head, shape.vocab, shape.hidden)


def experts(prefix: str, shape: Shape, names: tuple[str, str, str], count: int, hidden: int) -> Iterator[Module]:
    """The routed experts of one layer: gate, up, down."""
    for name, rows, columns in zip(
        names, (shape.expert_width, shape.expert_width, hidden), (hidden, hidden, shape.expert_width), strict=True
    ):
        yield Module(f"{prefix}.0.{name}", rows, columns, count)


def gated(prefix: str, hidden: int, width: int, names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")):
    """A gated MLP: gate and up [width, hidden], down [hidden, width]."""
    yield Module(f"{prefix}.{names[0]}", width, hidden)
    yield Module(f"{prefix}.{names[1]}", width, hidden)
    yield Module(f"{prefix}.{names[2]}", hidden, width)


def v4(shape: Shape) -> Iterator[Module]:
    """DeepSeek-V4 and V4.1: latent attention with output groups, compressors, indexers, MTP stages of a layer each."""
    yield from embeddings(shape, "embed", "head")
    ratios = shape.text.get("compress_ratios")
    ratios = ratios if isinstance(ratios, list) else []
    stages = max(len(ratios) - shape.layers, shape.mtp_declared or 0)
    draft_experts = shape.get("dspark_n_routed_experts") or shape.experts
    sources = shape.text.get("kv_source_layer_ids")
    for layer in range(shape.layers):
        ratio = ratios[layer] if layer < len(ratios) else 0
        if isinstance(sources, list) and layer not in sources:
            ratio = 0
        yield from v4_layer(f"layers.{layer}", shape, ratio, shape.experts)
    for stage in range(stages):
        yield from v4_layer(f"mtp.{stage}", shape, 0, draft_experts)
        yield Module(f"mtp.{stage}.e_proj", shape.hidden, shape.hidden)
        yield Module(f"mtp.{stage}.h_proj", shape.hidden, shape.hidden)
    tables, width = shape.text.get("engram_num_embeddings"), shape.get("engram_head_dim")
    if isinstance(tables, list) and width:
        for layer, rows in zip(shape.text.get("engram_layer_ids") or [], tables, strict=False):
            yield Module(f"layers.{layer}.engram.embed", rows, width)


def v4_layer(prefix: str, shape: Shape, ratio: int, count: int) -> Iterator[Module]:
    """One layer of V4: attention (rank q_lora in, o_lora out), compressor, indexer where the ratio is 4, experts."""
    hidden, head_dim, q_rank, o_rank = shape.hidden, shape.head_dim, shape.get("q_lora_rank"), shape.get("o_lora_rank")
    groups = shape.get("o_groups")
    attention = f"{prefix}.attn"
    yield Module(f"{attention}.wq_a", q_rank, hidden)
    yield Module(f"{attention}.wq_b", shape.heads * head_dim, q_rank)
    yield Module(f"{attention}.wkv", head_dim, hidden)
    yield Module(f"{attention}.wo_a", groups * o_rank, shape.heads * head_dim // groups)
    yield Module(f"{attention}.wo_b", hidden, groups * o_rank)
    if ratio:
        overlap = 2 if ratio == 4 else 1
        yield Module(f"{attention}.compressor.wkv", overlap * head_dim, hidden)
        yield Module(f"{attention}.compressor.wgate", overlap * head_dim, hidden)
    if ratio in (1, 2, 4):
        index_heads, index_dim = shape.get("index_n_heads"), shape.get("index_head_dim")
        yield Module(f"{attention}.indexer.wq_b", index_heads * index_dim, q_rank)
        yield Module(f"{attention}.indexer.weights_proj", index_heads, hidden)
        yield Module(f"{attention}.indexer.compressor.wkv", 2 * index_dim, hidden)
        yield Module(f"{attention}.indexer.compressor.wgate", 2 * index_dim, hidden)
    yield Module(f"{prefix}.ffn.gate", count, hidden)
    names = ("w1", "w3", "w2")
    yield from experts(f"{prefix}.ffn.experts", shape, names, count, hidden)
    if shape.shared_experts:
        yield from gated(f"{prefix}.ffn.shared_experts", hidden, shape.shared_experts * shape.expert_width, names)


def latent(shape: Shape) -> Iterator[Module]:
    """DeepSeek-V3 and its kin: MLA, leading dense layers, experts; MTP layers follow the last layer."""
    outer = "language_model." if shape.model_type in ("kimi_k25", "kimi_k3") else ""
    yield from embeddings(shape, f"{outer}model.embed_tokens", f"{outer}lm_head")
    for layer in range(shape.layers + (shape.mtp_declared or 0)):
        prefix = f"{outer}model.layers.{layer}"
        if layer < shape.layers and shape.kinds[layer] == "linear":
            yield from kimi_delta(f"{prefix}.self_attn", shape)
        else:
            yield from mla(f"{prefix}.self_attn", shape)
        if layer >= shape.layers or shape.moe[layer]:
            yield from latent_moe(prefix, shape)
        else:
            yield from gated(f"{prefix}.mlp", shape.hidden, shape.intermediate)
        if layer >= shape.layers:
            yield Module(f"{prefix}.eh_proj", shape.hidden, 2 * shape.hidden)


def mla(prefix: str, shape: Shape) -> Iterator[Module]:
    """MLA (DeepSeek-V2, arXiv 2405.04434, section 2.1), with the indexer of DSA where the configuration has one."""
    nope, rope, value = shape.get("qk_nope_head_dim"), shape.get("qk_rope_head_dim"), shape.get("v_head_dim")
    q_rank, kv_rank, heads = shape.get("q_lora_rank"), shape.get("kv_lora_rank"), shape.heads
    if q_rank:
        yield Module(f"{prefix}.q_a_proj", q_rank, shape.hidden)
        yield Module(f"{prefix}.q_b_proj", heads * (nope + rope), q_rank)
    else:
        yield Module(f"{prefix}.q_proj", heads * (nope + rope), shape.hidden)
    yield Module(f"{prefix}.kv_a_proj_with_mqa", kv_rank + rope, shape.hidden)
    yield Module(f"{prefix}.kv_b_proj", heads * (nope + value), kv_rank)
    yield Module(f"{prefix}.o_proj", shape.hidden, heads * value)
    index_heads, index_dim = shape.get("index_n_heads"), shape.get("index_head_dim")
    if index_heads and index_dim:
        yield Module(f"{prefix}.indexer.wq_b", index_heads * index_dim, q_rank)
        yield Module(f"{prefix}.indexer.wk", index_dim, shape.hidden)
        yield Module(f"{prefix}.indexer.weights_proj", index_heads, shape.hidden)


def kimi_delta(prefix: str, shape: Shape) -> Iterator[Module]:
    """Kimi Delta Attention (SGLang srt/models/kimi_linear.py): q, k, v, output, and the gates' projections."""
    linear = shape.text["linear_attn_config"]
    width = linear["num_heads"] * linear["head_dim"]
    for name in ("q_proj", "k_proj", "v_proj", "g_proj"):
        yield Module(f"{prefix}.{name}", width, shape.hidden)
    yield Module(f"{prefix}.f_a_proj", linear["head_dim"], shape.hidden)
    yield Module(f"{prefix}.f_b_proj", width, linear["head_dim"])
    yield Module(f"{prefix}.b_proj", linear["num_heads"], shape.hidden)
    yield Module(f"{prefix}.o_proj", shape.hidden, width)


def latent_moe(prefix: str, shape: Shape) -> Iterator[Module]:
    """Router, routed experts (in a space of their own in Kimi K3) and shared experts of one layer."""
    hidden = shape.get("routed_expert_hidden_size") or shape.hidden
    yield Module(f"{prefix}.mlp.gate", shape.experts, shape.hidden)
    names = ("gate_proj", "up_proj", "down_proj")
    yield from experts(f"{prefix}.mlp.experts", shape, names, shape.experts, hidden)
    if shape.shared_experts:
        yield from gated(f"{prefix}.mlp.shared_experts", shape.hidden, shape.shared_experts * shape.expert_width)


def plain(shape: Shape) -> Iterator[Module]:
    """Llama and its kin: grouped-query attention or a linear layer in its place, dense MLP or experts, MTP."""
    inner = "text_config" if shape.model_type in ("qwen3_5", "qwen3_5_moe") else ""
    model = "model.language_model" if inner else "model"
    yield from embeddings(shape, f"{model}.embed_tokens", "lm_head")
    for layer in range(shape.layers):
        prefix = f"{model}.layers.{layer}"
        if shape.kinds[layer] == "linear":
            yield from gated_delta(f"{prefix}.linear_attn", shape)
        else:
            yield from grouped(f"{prefix}.self_attn", shape, shape.kinds[layer] == "sliding")
        yield from feed_forward(prefix, shape, shape.moe[layer])
    if shape.mtp_key == "mtp_num_hidden_layers":
        yield Module("mtp.fc", shape.hidden, 2 * shape.hidden)
        for layer in range(shape.mtp_declared or 0):
            yield from grouped(f"mtp.layers.{layer}.self_attn", shape, False)
            yield from feed_forward(f"mtp.layers.{layer}", shape, bool(shape.experts))


def grouped(prefix: str, shape: Shape, sliding: bool) -> Iterator[Module]:
    """Multi-head or grouped-query attention. Layers with a window may have sizes of their own (swa_*, MiMo)."""
    sizes = [shape.get(f"swa_{key}") if sliding else None for key in ("num_key_value_heads", "head_dim", "v_head_dim")]
    kv_heads, head_dim, value = (
        own or usual for own, usual in zip(sizes, (shape.kv_heads, shape.head_dim, shape.v_head_dim), strict=True)
    )
    gate = 2 if shape.text.get("attn_output_gate") else 1
    yield Module(f"{prefix}.q_proj", gate * shape.heads * head_dim, shape.hidden)
    yield Module(f"{prefix}.k_proj", kv_heads * head_dim, shape.hidden)
    yield Module(f"{prefix}.v_proj", kv_heads * value, shape.hidden)
    yield Module(f"{prefix}.o_proj", shape.hidden, shape.heads * value)


def gated_delta(prefix: str, shape: Shape) -> Iterator[Module]:
    """Gated DeltaNet (transformers models/qwen3_5): queries, keys, values, output gate, two small gates, output."""
    keys = shape.get("linear_num_key_heads") * shape.get("linear_key_head_dim")
    value_heads = shape.get("linear_num_value_heads")
    values = value_heads * shape.get("linear_value_head_dim")
    yield Module(f"{prefix}.in_proj_qkv", 2 * keys + values, shape.hidden)
    yield Module(f"{prefix}.in_proj_z", values, shape.hidden)
    yield Module(f"{prefix}.in_proj_a", value_heads, shape.hidden)
    yield Module(f"{prefix}.in_proj_b", value_heads, shape.hidden)
    yield Module(f"{prefix}.out_proj", shape.hidden, values)


def feed_forward(prefix: str, shape: Shape, moe: bool) -> Iterator[Module]:
    """The MLP of one layer, under the names that the model type uses."""
    if not moe:
        yield from gated(f"{prefix}.mlp", shape.hidden, shape.intermediate)
        return
    holder = "block_sparse_moe" if shape.model_type == "minimax_m2" else "mlp"
    names = ("w1", "w3", "w2") if holder == "block_sparse_moe" else ("gate_proj", "up_proj", "down_proj")
    yield Module(
        f"{prefix}.{holder}.{'router' if shape.model_type == 'gpt_oss' else 'gate'}", shape.experts, shape.hidden
    )
    yield from experts(f"{prefix}.{holder}.experts", shape, names, shape.experts, shape.hidden)
    width = shape.get("shared_expert_intermediate_size")
    if width:
        yield from gated(f"{prefix}.mlp.shared_expert", shape.hidden, width)
        yield Module(f"{prefix}.mlp.shared_expert_gate", 1, shape.hidden)


def nemotron(shape: Shape) -> Iterator[Module]:
    """Nemotron-H: one mixer a layer (Mamba-2, attention, experts or MLP), squared ReLU, so no gate projection."""
    yield from embeddings(shape, "backbone.embeddings", "lm_head")
    hidden = shape.hidden
    for layer, kind in enumerate(shape.kinds):
        prefix = f"backbone.layers.{layer}.mixer"
        if kind == "mamba":
            heads, state = shape.get("mamba_num_heads"), shape.get("ssm_state_size")
            width, groups = heads * shape.get("mamba_head_dim"), shape.get("n_groups")
            yield Module(f"{prefix}.in_proj", 2 * width + 2 * groups * state + heads, hidden)
            yield Module(f"{prefix}.conv1d", width + 2 * groups * state, shape.get("conv_kernel"))
            yield Module(f"{prefix}.out_proj", hidden, width)
        elif kind == "full":
            yield from grouped(prefix, shape, False)
        elif shape.moe[layer]:
            yield Module(f"{prefix}.gate", shape.experts, hidden)
            inner = shape.get("moe_latent_size") or hidden
            yield Module(f"{prefix}.experts.0.up_proj", shape.expert_width, inner, shape.experts)
            yield Module(f"{prefix}.experts.0.down_proj", inner, shape.expert_width, shape.experts)
            width = shape.get("moe_shared_expert_intermediate_size")
            if width:
                yield Module(f"{prefix}.shared_experts.up_proj", width, hidden)
                yield Module(f"{prefix}.shared_experts.down_proj", hidden, width)
        else:
            yield Module(f"{prefix}.up_proj", shape.intermediate, hidden)
            yield Module(f"{prefix}.down_proj", hidden, shape.intermediate)
