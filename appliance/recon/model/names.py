"""What a tensor's name says: its module, its role there, the module's component, and how engines split it.

Names seen in public checkpoints: `model.layers.3.self_attn.q_proj.weight`, `layers.3.ffn.experts.17.w1.scale`,
`backbone.layers.3.mixer.in_proj.weight`, `model.layers.3.mlp.experts.gate_up_proj_blocks`, `mtp.0.attn.wq_a.weight`.
"""

import re
from typing import Literal, NamedTuple

from appliance.recon.model.configuration import Shape

ROLES = {
    "weight": "weight",
    "weight_packed": "packed",
    "qweight": "qweight",
    "weight_scale": "scale",
    "weight_scale_inv": "scale",
    "scale": "scale",
    "scales": "scale",
    "weight_scale_2": "scale2",
    "weight_global_scale": "scale2",
    "input_scale": "input_scale",
    "input_global_scale": "input_scale",
    "activation_scale": "input_scale",
    "qzeros": "zeros",
    "weight_zero_point": "zeros",
    "g_idx": "order",
    "weight_g_idx": "order",
    "weight_shape": "shape",
    "bias": "bias",
    "k_scale": "kv_scale",
    "v_scale": "kv_scale",
}
FUSED = (("_blocks", "weight"), ("_scales", "scale"), ("_scale_inv", "scale"), ("_weight_scale", "scale"))
"""Endings of fused expert tensors that have no dot before their role (gpt-oss)."""

Sharding = Literal["replicated", "split", "kv_heads", "experts"]

LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
MTP = re.compile(r"(?:^|\.)mtp(?:_layers)?(?:\.layers)?(?:\.(\d+))?(?:\.|$)")
REPLICATED = re.compile(
    r"(?:^|\.)(q_a_proj|kv_a_proj_with_mqa|wq_a|wkv|fused_qkv_a_proj_with_mqa|eh_proj|e_proj|h_proj|fc|weights_proj|"
    r"indexers_proj)$"
)
RULES: list[tuple[str, re.Pattern]] = [
    ("vision", re.compile(r"(^|\.)(visual|vision\w*|mm_projector|multi_modal_projector|image_newline)(\.|$)")),
    ("engram", re.compile(r"engram")),
    ("embedding", re.compile(r"(^|\.)(embed|embed_tokens|embeddings|wte|word_embeddings)$")),
    ("head", re.compile(r"(^|\.)(lm_head|head)$")),
    ("shared_experts", re.compile(r"\.shared_experts?(\.|$)")),
    ("routed_experts", re.compile(r"\.experts(\.|$)")),
    ("router", re.compile(r"\.(gate|router|shared_expert_gate)(\.|$)")),
    ("indexer", re.compile(r"\.indexers?(_proj)?(\.|$)")),
    ("compressor", re.compile(r"\.compressor\.")),
    ("linear_attention", re.compile(r"\.linear_attn\.")),
    ("attention", re.compile(r"\.(self_attn|attn|attention|self_attention)\.")),
    ("dense_mlp", re.compile(r"\.(mlp|ffn|feed_forward)\.")),
    ("mixer", re.compile(r"\.mixer\.")),
]


class Place(NamedTuple):
    """Where a module belongs."""

    component: str
    sharding: Sharding
    mtp: str | None
    """Prefix of the MTP layer that it is part of ("mtp.0", "layers.61"), or None."""
    inner: str
    """The component that it would be outside of the MTP layer."""


def split_role(tensor: str) -> tuple[str, str]:
    """("model.layers.0.mlp.up_proj", "scale") of a tensor's name; the role of a bare parameter is "weight"."""
    module, _, last = tensor.rpartition(".")
    role = ROLES.get(last)
    if role is not None and module:
        return module, role
    for ending, fused_role in FUSED:
        if last.endswith(ending):
            return tensor.removesuffix(ending), fused_role
    return tensor, "bias" if last.endswith("_bias") else "weight"


class Places:
    """Finds the Place of modules; what two experts of a layer share is found once."""

    def __init__(self, shape: Shape):
        self._shape = shape
        self._known: dict[str, Place] = {}

    def of(self, module: str) -> Place:
        """The place of `module`, a name as split_role gives it."""
        before, experts, after = module.partition(".experts.")
        key = before + experts + after.partition(".")[2] if after[:1].isdigit() else module
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = self._find(module)
        return place

    def _find(self, module: str) -> Place:
        mtp = self._mtp_layer(module)
        component = next((name for name, rule in RULES if rule.search(module)), "other")
        if component == "mixer":
            component = self._of_mixer(module)
        elif component == "attention" and self._kind(module) == "linear":
            component = "linear_attention"
        if component == "router" and module.endswith("bias"):
            component = "other"
        return Place("mtp" if mtp else component, sharding_of(component, module), mtp, component)

    def _layer(self, module: str) -> int | None:
        found = LAYER.search(module)
        return int(found[1]) if found else None

    def _kind(self, module: str) -> str | None:
        layer = self._layer(module)
        return self._shape.kinds[layer] if layer is not None and layer < len(self._shape.kinds) else None

    def _mtp_layer(self, module: str) -> str | None:
        found = MTP.search(module)
        if found:
            return f"mtp.{found[1]}" if found[1] is not None else "mtp"
        layer = self._layer(module)
        if layer is None or not self._shape.layers or layer < self._shape.layers or is_vision(module):
            return None
        return f"layers.{layer}"

    def _of_mixer(self, module: str) -> str:
        kind = self._kind(module)
        return {"mamba": "mamba", "full": "attention"}.get(kind or "", "dense_mlp")


def is_vision(module: str) -> bool:
    """Whether the module belongs to the vision tower, whose layers are numbered apart."""
    return RULES[0][1].search(module) is not None


def sharding_of(component: str, module: str) -> Sharding:
    """How an engine with tensor parallelism holds the module (SGLang 0.5.23: ReplicatedLinear, QKVParallelLinear,
    Column-/RowParallelLinear, VocabParallelEmbedding in srt/models and srt/layers)."""
    if component == "routed_experts":
        return "experts"
    if component in ("router", "indexer", "compressor", "vision", "other") or REPLICATED.search(module):
        return "replicated"
    if module.endswith(("k_proj", "v_proj")) and component == "attention":
        return "kv_heads"
    return "split"
