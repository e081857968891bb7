"""Where config.json's quantization_config and hf_quant_config.json say different things, in words."""

from appliance.recon.model.quant_blocks import kv_of, left_out, lists_exclusions


def disagreements(block: dict, other: dict) -> tuple[str, ...]:
    """One line for each kind of difference between `block` (config.json) and `other` (hf_quant_config.json)."""
    words = [*algorithm(block, other), *kv_cache(block, other), *exclusions(block, other)]
    return (*words, *layers(block, other), *weight_only(block, other))


def algorithm(block: dict, other: dict) -> list[str]:
    """The algorithm for all layers."""
    ours, theirs = block.get("quant_algo"), other.get("quant_algo")
    if not isinstance(theirs, str) or ours == theirs:
        return []
    said = ours or block.get("quant_method") or "no algorithm"
    return [f"config.json says {said}, hf_quant_config.json says {theirs}"]


def kv_cache(block: dict, other: dict) -> list[str]:
    """The type of the KV cache, where the second file names one."""
    if kv_of(other) is None or kv_of(block) == kv_of(other):
        return []
    return [f"KV cache: config.json says {kv_of(block) or 'nothing'}, hf_quant_config.json says {kv_of(other)}"]


def exclusions(block: dict, other: dict) -> list[str]:
    """The modules left out, where the second file lists them."""
    ours, theirs = set(left_out(block)), set(left_out(other))
    if ours == theirs or not lists_exclusions(other):
        return []
    return [
        f"modules left out: {len(ours - theirs)} only in config.json, {len(theirs - ours)} only in hf_quant_config.json"
    ]


def layers(block: dict, other: dict) -> list[str]:
    """The algorithm of single layers (quantized_layers)."""
    ours, theirs = algorithms(block), algorithms(other)
    differing = sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
    if not differing:
        return []
    name = differing[0]
    return [
        f"{len(differing)} layers have one algorithm in config.json and another in hf_quant_config.json, "
        f"first {name}: {ours[name]} and {theirs[name]}"
    ]


def weight_only(block: dict, other: dict) -> list[str]:
    """config_groups that quantise activations where the listed algorithm is weight-only."""
    if not any(name.startswith("W4A16") for name in algorithms(other).values()):
        return []
    groups = block.get("config_groups")
    for entry in groups.values() if isinstance(groups, dict) else []:
        weights = entry.get("weights") if isinstance(entry, dict) else None
        if isinstance(weights, dict) and weights.get("num_bits") == 4 and entry.get("input_activations"):
            return ["4-bit layers: config.json quantises their activations, hf_quant_config.json says weight-only"]
    return []


def algorithms(block: dict) -> dict[str, str]:
    """The algorithm of each of modelopt's quantized_layers."""
    listed = block.get("quantized_layers")
    entries = listed.items() if isinstance(listed, dict) else ()
    return {name: str(entry.get("quant_algo")) for name, entry in entries if isinstance(entry, dict)}
