"""Where quantisation is written down, and the parts of it that every reader needs."""

IGNORE_KEYS = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
"""Names that writers give to the list of modules left out: compressed-tensors and modelopt's config.json,
modelopt's hf_quant_config.json, transformers, some float8 writers."""


def quantization_block(config: dict) -> tuple[dict | None, str]:
    """(quantization_config, where it stands) of a config.json; (None, "") if it has none."""
    text = config.get("text_config")
    places = [(config, "quantization_config"), (config, "compression_config")]
    if isinstance(text, dict):
        places.append((text, "quantization_config"))
    for holder, key in places:
        if isinstance(holder.get(key), dict):
            return holder[key], f"config.json: {'text_config.' if holder is text else ''}{key}"
    return None, ""


def quantization_of(quant_file: dict | None) -> dict | None:
    """The part of hf_quant_config.json that speaks of quantisation."""
    block = quant_file.get("quantization") if quant_file else None
    return block if isinstance(block, dict) else None


def left_out(block: dict) -> list[str]:
    """The modules that a quantization block leaves out."""
    lists = [block[key] for key in IGNORE_KEYS if isinstance(block.get(key), list)]
    return [name for names in lists for name in names if isinstance(name, str)]


def lists_exclusions(block: dict) -> bool:
    """Whether the block has a list of what it leaves out, be it empty."""
    return any(isinstance(block.get(key), list) for key in IGNORE_KEYS)


def kv_of(block: dict) -> str | None:
    """The type of KV cache that a quantization block asks for: "fp8", or None."""
    algo, scheme = block.get("kv_cache_quant_algo"), block.get("kv_cache_scheme")
    for name in (algo, scheme):
        if isinstance(name, str):
            return name.lower()
    if isinstance(scheme, dict):
        return number_format(scheme)
    return None


def number_format(arguments: dict) -> str | None:
    """ "fp8" for {"type": "float", "num_bits": 8}; 4-bit floats are mxfp4 in groups of 32, nvfp4 otherwise."""
    bits, kind = arguments.get("num_bits"), arguments.get("type")
    if not isinstance(bits, int) or not isinstance(kind, str):
        return None
    if (kind, bits) == ("float", 4):
        return "mxfp4" if arguments.get("group_size") == 32 else "nvfp4"
    return {("float", 8): "fp8", ("int", 4): "int4", ("int", 8): "int8"}.get((kind, bits))
