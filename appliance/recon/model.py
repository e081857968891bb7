"""A checkpoint folder, from its configuration and its tensor headers: no weight is read."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from appliance.documents import ModelReport
from appliance.errors import InputError
from appliance.recon.safetensors_header import read_header

INDEX = "model.safetensors.index.json"


def model_report(folder: Path) -> ModelReport:
    """Report the checkpoint in `folder`. Raises InputError when it is absent, incomplete or damaged."""
    if not folder.exists():
        raise InputError(f"{folder}: no such folder; expected a model folder with config.json and *.safetensors")
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; expected a model folder with config.json and *.safetensors")
    config = read_json(folder / "config.json", folder)
    shards = shard_names(folder)
    with ThreadPoolExecutor(max_workers=16) as pool:
        headers = list(pool.map(lambda name: read_header(folder / name), shards))
    tensors = {name: tensor for header in headers for name, tensor in header.items()}
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    heads = number(text, "num_attention_heads")
    hidden = number(text, "hidden_size")
    return ModelReport(
        path=str(folder.resolve()),
        architecture=architecture(config, folder),
        model_type=config.get("model_type"),
        parameters=sum(tensor.elements for tensor in tensors.values()),
        weight_bytes=sum(tensor.end - tensor.begin for tensor in tensors.values()),
        tensor_types=dict(sorted(Counter(tensor.dtype for tensor in tensors.values()).items())),
        layers=number(text, "num_hidden_layers"),
        heads=heads,
        kv_heads=number(text, "num_key_value_heads") or heads,
        head_dim=number(text, "head_dim") or (hidden // heads if hidden and heads else None),
        context_length=number(text, "max_position_embeddings"),
        vocab_size=number(text, "vocab_size"),
        sources={"parameters": "safetensors headers", "weight_bytes": "safetensors headers", "layers": "config.json"},
    )


def shard_names(folder: Path) -> list[str]:
    """The safetensors files of `folder`: those that the index names if there is one, otherwise all there are."""
    if not (folder / INDEX).exists():
        names = sorted(path.name for path in folder.glob("*.safetensors"))
        if not names:
            raise InputError(f"{folder}: no *.safetensors file; expected the model's weights")
        return names
    index = read_json(folder / INDEX, folder)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise InputError(f"{folder / INDEX}: no weight_map of tensor to file; expected one")
    names = sorted(set(weight_map.values()))
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(names)} weight files missing, first {missing[0]}; "
            f"expected all that {INDEX} names"
        )
    return names


def read_json(path: Path, folder: Path) -> dict:
    """The JSON object in `path`, a file of the model `folder`. Raises InputError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        empty = " (the folder is empty)" if not any(folder.iterdir()) else ""
        raise InputError(f"{folder}: no {path.name}{empty}; expected a model folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: holds a {type(data).__name__}; expected a JSON object")
    return data


def architecture(config: dict, folder: Path) -> str:
    """The model class that config.json names. Raises InputError when it names none."""
    names = config.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise InputError(f"{folder / 'config.json'}: no architectures; expected the model's class, as in transformers")
    return names[0]


def number(config: dict, key: str) -> int | None:
    """A whole number of the configuration, or None."""
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
