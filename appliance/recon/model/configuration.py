"""What config.json says of a model's shape, under one set of names.

The same quantity has several keys (experts: num_experts, n_routed_experts, num_local_experts), and multimodal models
keep theirs in text_config.
"""

from collections import Counter
from dataclasses import dataclass, field

from appliance.errors import InputError

MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
MOST_LAYERS = 10_000
LARGEST = 2**53
"""Beyond this a number in a configuration is no size of anything."""


@dataclass(frozen=True)
class Shape:
    """A model's shape. What the configuration does not say is None."""

    architecture: str
    model_type: str
    text: dict = field(repr=False)
    """The part of the configuration that describes the language model."""
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    v_head_dim: int | None
    vocab: int | None
    context: int | None
    intermediate: int | None
    experts: int | None
    top_k: int | None
    shared_experts: int | None
    expert_width: int | None
    kinds: tuple[str, ...]
    """What each layer is: full, sliding, linear, mamba, mlp (no attention at all)."""
    moe: tuple[bool, ...]
    """Whether each layer has routed experts."""
    mtp_key: str | None
    mtp_declared: int | None
    tied: bool

    def layer_counts(self) -> dict[str, int]:
        """Number of layers by kind."""
        return dict(Counter(self.kinds))

    def get(self, key: str) -> int | None:
        """A whole number of the language model's configuration, or None."""
        return number(self.text, key)


def shape_of(config: dict, where: str) -> Shape:
    """Read the shape out of a config.json that came from `where`. Raises InputError when it is no such file."""
    architecture, text = architecture_of(config, where), language_part(config)
    for key in ("num_hidden_layers", "n_layer", "num_layers", *MTP_KEYS):
        if (number(text, key) or 0) > MOST_LAYERS:
            raise InputError(f"{where}: {key} is {text[key]}; expected {MOST_LAYERS} layers at most")
    layers = first(text, "num_hidden_layers", "n_layer", "num_layers")
    heads = first(text, "num_attention_heads", "n_head")
    hidden = first(text, "hidden_size", "n_embd", "d_model")
    head_dim = number(text, "head_dim")
    if head_dim is None and number(text, "kv_lora_rank") is None and hidden and heads:
        head_dim = hidden // heads
    experts = first(text, "num_experts", "n_routed_experts", "num_local_experts")
    width = first(text, "moe_intermediate_size", "expert_intermediate_size")
    mtp_key = next((key for key in MTP_KEYS if number(text, key) is not None), None)
    kinds = layer_kinds(text, layers or 0)
    return Shape(
        architecture=architecture,
        model_type=str(config.get("model_type") or text.get("model_type") or ""),
        text=text,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=number(text, "num_key_value_heads") or heads,
        head_dim=head_dim,
        v_head_dim=number(text, "v_head_dim") or head_dim,
        vocab=number(text, "vocab_size"),
        context=first(text, "max_position_embeddings", "n_positions"),
        intermediate=first(text, "intermediate_size", "n_inner"),
        experts=experts or None,
        top_k=first(text, "num_experts_per_tok", "num_experts_per_token", "moe_topk"),
        shared_experts=shared_experts(text) if experts else None,
        expert_width=width or (number(text, "intermediate_size") if experts else None),
        kinds=kinds,
        moe=moe_layers(text, layers or 0, bool(experts)),
        mtp_key=mtp_key,
        mtp_declared=number(text, mtp_key) if mtp_key else None,
        tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
    )


def architecture_of(config: dict, where: str) -> str:
    """The model class that config.json names. Raises InputError when it names none, saying what the file is instead."""
    names = config.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    if {"n_layers", "dim"} <= config.keys():
        raise InputError(
            f"{where}: a configuration of DeepSeek's own inference code (dim, n_layers); "
            "expected the model's config.json, which names its architectures"
        )
    raise InputError(f"{where}: no architectures; expected the model's class, as in transformers")


def language_part(config: dict) -> dict:
    """The configuration of the language model: text_config where there is one, otherwise all of it."""
    text = config.get("text_config")
    return text if isinstance(text, dict) else config


def layer_kinds(text: dict, layers: int) -> tuple[str, ...]:
    """What each of the layers is. Four ways of saying it are known; without any, every layer attends to all."""
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):  # Nemotron-H: one letter a layer
        return tuple({"M": "mamba", "*": "full"}.get(letter, "mlp") for letter in pattern[:layers])
    types = text.get("layer_types")
    if isinstance(types, list):
        return tuple(str(kind).removesuffix("_attention") for kind in types[:layers])
    linear = text.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):  # Kimi: counted from 1
        full = {layer - 1 for layer in linear["full_attn_layers"] if isinstance(layer, int)}
        return tuple("full" if layer in full else "linear" for layer in range(layers))
    mixed = text.get("hybrid_layer_pattern")
    if isinstance(mixed, list):  # MiMo: 1 marks a layer with a sliding window
        return tuple("sliding" if flag else "full" for flag in mixed[:layers])
    window = number(text, "sliding_window")
    if window and text.get("use_sliding_window", True) and "compress_ratios" not in text:
        return ("sliding",) * layers
    return ("full",) * layers


def moe_layers(text: dict, layers: int, has_experts: bool) -> tuple[bool, ...]:
    """Whether each layer has routed experts."""
    if not has_experts:
        return (False,) * layers
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return tuple(letter == "E" for letter in pattern[:layers])
    listed = text.get("moe_layer_freq")
    if isinstance(listed, list):
        return tuple(bool(flag) for flag in listed[:layers])
    dense = number(text, "first_k_dense_replace") or 0
    step = number(text, "decoder_sparse_step") or (listed if isinstance(listed, int) else 1) or 1
    only_dense = text.get("mlp_only_layers") or []
    return tuple(
        layer >= dense and layer not in only_dense and (layer + 1 - dense) % step == 0 for layer in range(layers)
    )


def shared_experts(text: dict) -> int | None:
    """Number of experts that every token passes; one where only the width of a shared expert is given."""
    count = first(text, "n_shared_experts", "num_shared_experts")
    if count is None and first(text, "shared_expert_intermediate_size"):
        return 1
    return count


def first(config: dict, *keys: str) -> int | None:
    """The first of `keys` that holds a whole number."""
    return next((value for key in keys if (value := number(config, key)) is not None), None)


def number(config: dict, key: str) -> int | None:
    """A size in the configuration: a whole number that is not negative, or None."""
    value = config.get(key)
    return value if type(value) is int and 0 <= value < LARGEST else None
