"""A checkpoint in a local folder: configuration, index, and the headers of all shards, read at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from appliance.errors import InputError
from appliance.recon.model.checkpoint import CONFIG, INDEX, QUANT_FILE, Checkpoint, Shard, parse_object, read_index
from appliance.recon.safetensors_header import WeightFileError, faults, read_header

READERS = 16


def read_folder(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`, whole or not. Raises InputError when it is no model folder at all."""
    if not folder.exists():
        raise InputError(f"{folder}: no such folder; expected a model folder with config.json and *.safetensors")
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; expected a model folder with config.json and *.safetensors")
    config = read_json(folder / CONFIG, folder)
    quant_file = read_json(folder / QUANT_FILE, folder) if (folder / QUANT_FILE).exists() else None
    weight_map = size = None
    if (folder / INDEX).exists():
        weight_map, size = read_index(read_json(folder / INDEX, folder), str(folder / INDEX))
    there = {path.name for path in folder.glob("*.safetensors") if path.is_symlink() or path.is_file()}
    named = set(weight_map.values()) if weight_map is not None else set()
    there |= {name for name in named if (folder / name).is_file()}
    with ThreadPoolExecutor(max_workers=READERS) as pool:
        shards = list(pool.map(lambda name: read_shard(folder, name), sorted(there)))
    return Checkpoint(
        path=str(folder.resolve()),
        origin="folder",
        config=config,
        quant_file=quant_file,
        weight_map=weight_map,
        declared_size=size,
        shards=shards,
        missing=sorted(named - there),
        chat_template=has_chat_template(folder),
    )


def has_chat_template(folder: Path) -> bool | None:
    """Whether transformers finds a chat template here (chat_template.jinja, chat_template.json, tokenizer_config.json);
    None in a folder without any tokenizer, which somebody may have left out."""
    if any((folder / name).exists() for name in ("chat_template.jinja", "chat_template.json")):
        return True
    try:
        return bool(read_json(folder / "tokenizer_config.json", folder).get("chat_template"))
    except InputError:
        return None


def read_shard(folder: Path, name: str) -> Shard:
    """One weight file with its header, or with what is wrong with it."""
    path = folder / name
    try:
        size = path.stat().st_size
    except OSError as error:
        words = f"{path}: cannot be read ({error.strerror}); expected safetensors"
        return Shard(name, 0, fault=("missing" if isinstance(error, FileNotFoundError) else "unreadable", words))
    try:
        tensors = read_header(path)
    except WeightFileError as error:
        return Shard(name, size, fault=(error.kind, str(error)))
    wrong = faults(tensors)
    fault = ("inconsistent", f"{path}: {wrong[0]}{also(len(wrong) - 1)}") if wrong else None
    return Shard(name, size, tensors=tensors, fault=fault)


def also(count: int) -> str:
    """ " (and 3 more)", or nothing."""
    return f" (and {count} more)" if count > 0 else ""


def read_json(path: Path, folder: Path) -> dict:
    """The JSON object in `path`, a file of the model `folder`. Raises InputError."""
    if path.exists() and not path.is_file():  # to open a pipe would be to wait for its writer
        raise InputError(f"{path}: not a regular file; expected a JSON object")
    try:
        return parse_object(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        empty = " (the folder is empty)" if not any(folder.iterdir()) else ""
        raise InputError(f"{folder}: no {path.name}{empty}; expected a model folder") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected a JSON object") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from None
