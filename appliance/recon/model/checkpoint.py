"""A checkpoint as it was found, before anything is concluded from it: what a folder and the hub both give."""

import json
from dataclasses import dataclass, field
from functools import cached_property

from appliance.errors import InputError
from appliance.recon.safetensors_header import TensorInfo

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
QUANT_FILE = "hf_quant_config.json"


@dataclass(frozen=True)
class Shard:
    """One weight file. `tensors` is None where its header could not be read; `fault` (kind, words) says why, or what
    else is wrong with it."""

    name: str
    size: int
    sha256: str | None = None
    tensors: dict[str, TensorInfo] | None = field(default=None, repr=False)
    fault: tuple[str, str] | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Configuration, index and shards of one checkpoint, from a folder or from the hub."""

    path: str
    origin: str
    config: dict = field(repr=False)
    quant_file: dict | None = field(default=None, repr=False)
    weight_map: dict[str, str] | None = field(default=None, repr=False)
    """The index's map of tensor to file; None where there is no index."""
    declared_size: int | None = None
    """metadata.total_size of the index."""
    shards: list[Shard] = field(default_factory=list, repr=False)
    missing: list[str] = field(default_factory=list)
    """Files that the index names and that are not there."""
    revision: str | None = None
    chat_template: bool | None = None
    """Whether there is one, in a file of its own or in the tokenizer's configuration; None where not looked at."""

    @cached_property
    def named(self) -> frozenset[str] | None:
        """The files that the index names; None where there is no index."""
        return None if self.weight_map is None else frozenset(self.weight_map.values())


def parse_object(text: str | bytes, where: str) -> dict:
    """The JSON object in `text`, which came from `where`. Raises InputError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as JSON ({error})") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: holds a {type(data).__name__}; expected a JSON object")
    return data


def read_index(index: dict, where: str) -> tuple[dict[str, str], int | None]:
    """(tensor to file, total size) of an index that came from `where`. Raises InputError."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise InputError(f"{where}: no weight_map of tensor to file; expected one")
    outside = next((name for name in weight_map.values() if name.startswith("/") or ".." in name.split("/")), None)
    if outside is not None:
        raise InputError(f"{where}: names {outside!r}, which lies outside the model; expected files of the model")
    metadata = index.get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    known = type(size) is int or (type(size) is float and size.is_integer())  # some writers put 1.5e11
    return weight_map, int(size) if known else None
