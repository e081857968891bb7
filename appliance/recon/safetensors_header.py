"""The header of a safetensors file, read without its weights, and checked against the file's size.

Format: 8 bytes little-endian header length, JSON header, tensor bytes (safetensors specification). A file
shorter than its header says loads without an error by memory map, and the model then talks nonsense.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import InputError

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000  # the reference implementation's own limit
LFS_POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file: type as the header writes it, shape, and its bytes within the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


def read_header(path: Path) -> dict[str, TensorInfo]:
    """The tensors of the safetensors file at `path` by name.

    Raises InputError when the file is absent, is no safetensors file, or is shorter or longer than its
    header says.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            if size == 0:
                raise InputError(f"{path}: empty file; expected safetensors")
            if (start + file.read(len(LFS_POINTER) - LENGTH_BYTES)).startswith(LFS_POINTER):
                raise InputError(f"{path}: a Git LFS pointer of {size} bytes; expected the weights it points to")
            if len(start) < LENGTH_BYTES or length > min(size - LENGTH_BYTES, LONGEST_HEADER):
                raise InputError(
                    f"{path}: truncated within its header ({size} bytes, header of {length}); "
                    "expected a whole safetensors file"
                )
            file.seek(LENGTH_BYTES)
            header = file.read(length)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected safetensors") from None
    tensors = parse_header(header, path)
    expected = LENGTH_BYTES + length + max((tensor.end for tensor in tensors.values()), default=0)
    if size != expected:
        word = "truncated" if size < expected else "longer than its header says"
        raise InputError(f"{path}: {word}: {size} bytes, expected {expected}")
    return tensors


def parse_header(header: bytes, path: Path) -> dict[str, TensorInfo]:
    """Parse a header's JSON. Raises InputError when it is not what the specification says."""
    try:
        entries = json.loads(header)
        return {
            name: TensorInfo(entry["dtype"], tuple(map(int, entry["shape"])), *map(int, entry["data_offsets"]))
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: header is not a safetensors header ({type(error).__name__}: {error})") from None
