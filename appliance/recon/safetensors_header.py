"""The header of a safetensors file, read without its weights, and checked against the file's size.

Format: 8 bytes little-endian header length, JSON header, tensor bytes (safetensors specification). A file
shorter than its header says loads without an error by memory map, and the model then talks nonsense.
"""

import json
import stat
from pathlib import Path
from typing import NamedTuple

from appliance.errors import InputError

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000  # the reference implementation's own limit
LFS_POINTER = b"version https://git-lfs"
BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}
"""Bits of one element by type, as in the reference implementation (safetensors 0.8, tensor.rs)."""


class WeightFileError(InputError):
    """A weight file that is not what it should be; `kind` names the fault in one word or two."""

    def __init__(self, kind: str, words: str):
        super().__init__(words)
        self.kind = kind


class TensorInfo(NamedTuple):
    """One tensor of a file: type as the header writes it, shape, and its bytes within the data.

    A named tuple because a checkpoint has 10^5 of them, and a tuple is the quickest thing to make.
    """

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

    Raises WeightFileError (an InputError) when the file is absent, is no safetensors file, or is shorter or longer
    than its header says.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would be to wait for its writer
            raise WeightFileError("unreadable", f"{path}: not a regular file; expected safetensors")
        size = status.st_size
        with path.open("rb") as file:
            start = file.read(len(LFS_POINTER))
            require_start(start, size, str(path))
            length = int.from_bytes(start[:LENGTH_BYTES], "little")
            file.seek(LENGTH_BYTES)
            header = file.read(length)
    except OSError as error:
        kind = "missing" if isinstance(error, FileNotFoundError) else "unreadable"
        raise WeightFileError(kind, f"{path}: cannot be read ({error.strerror}); expected safetensors") from None
    tensors = parse_header(header, path)
    require_size(tensors, length, size, str(path))
    return tensors


def require_start(start: bytes, size: int, where: str) -> None:
    """Raise WeightFileError unless `start`, the first bytes of a file of `size` bytes, can begin a safetensors file."""
    if size == 0:
        raise WeightFileError("zero-length", f"{where}: empty file; expected safetensors")
    if start.startswith(LFS_POINTER):
        raise WeightFileError(
            "lfs-pointer", f"{where}: a Git LFS pointer of {size} bytes; expected the weights it points to"
        )
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if size < LENGTH_BYTES or length > min(size - LENGTH_BYTES, LONGEST_HEADER):
        raise WeightFileError(
            "truncated",
            f"{where}: truncated within its header ({size} bytes, header of {length}); "
            "expected a whole safetensors file",
        )


def require_size(tensors: dict[str, TensorInfo], length: int, size: int, where: str) -> None:
    """Raise WeightFileError unless the file is as long as its header of `length` bytes says."""
    expected = LENGTH_BYTES + length + max((tensor.end for tensor in tensors.values()), default=0)
    if size != expected:
        kind, word = ("truncated",) * 2 if size < expected else ("longer", "longer than its header says")
        raise WeightFileError(kind, f"{where}: {word}: {size} bytes, expected {expected}")


def parse_header(header: bytes, path: Path | str) -> dict[str, TensorInfo]:
    """Parse a header's JSON. Raises WeightFileError when it is not what the specification says."""
    try:
        entries = json.loads(header)
        return {
            name: TensorInfo(word(entry["dtype"]), tuple(map(size, entry["shape"])), *map(size, entry["data_offsets"]))
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        words = f"{path}: header is not a safetensors header ({type(error).__name__}: {error})"
        raise WeightFileError("not-safetensors", words) from None


def word(value: object) -> str:
    """`value`, which must be text. Raises TypeError."""
    if type(value) is not str:
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def size(value: object) -> int:
    """`value`, which must be a whole number that fits 63 bits. Raises TypeError, ValueError."""
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    if not 0 <= value < 2**63:
        raise ValueError("a number that is no size")
    return value


def faults(tensors: dict[str, TensorInfo]) -> list[str]:
    """What is wrong with a header that parses: lengths that do not fit types and shapes, holes, overlaps."""
    wrong = []
    covered = 0
    furthest = 0
    for name, (dtype, shape, begin, end) in tensors.items():
        count = 1
        for dimension in shape:
            count *= dimension
        covered += end - begin
        furthest = max(furthest, end)
        if dtype in BITS and (end - begin) * 8 != count * BITS[dtype]:  # a type of tomorrow is no fault
            wrong.append(f"{name}: {end - begin} bytes for {dtype} {list(shape)}")
    if covered != furthest:
        wrong.append(f"tensors cover {covered} of {furthest} bytes: holes or overlaps")
    return wrong
