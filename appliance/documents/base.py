"""What all documents share: strict fields, a kind, and one way to be read and written."""

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from appliance.errors import InputError

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""Text that the operating system takes as a path, an argument or a variable: it has no NUL."""


class Part(BaseModel):
    """A part of a document: unknown fields are errors, and a value is not changed after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Document(Part):
    """A typed JSON document that a stage reads or writes. `kind` names its type in the file."""

    KIND: ClassVar[str]
    kind: str
    schema_version: Literal[1] = 1

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and validate the document at `path`. Raises InputError with one line that says what is wrong."""
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; expected a {cls.KIND} document (JSON)") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); expected a {cls.KIND} document") from None
        except UnicodeDecodeError:
            raise InputError(f"{path}: not UTF-8 text; expected a {cls.KIND} document (JSON)") from None
        return cls.parse(text, where=str(path))

    @classmethod
    def parse(cls, text: str, where: str) -> Self:
        """Validate JSON `text` that came from `where`. Raises InputError with one line that says what is wrong."""
        try:
            data = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair could be read, but never written
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error}); expected a {cls.KIND} document") from None
        if not isinstance(data, dict) or data.get("kind") != cls.KIND:
            found = data.get("kind") if isinstance(data, dict) else type(data).__name__
            raise InputError(f"{where}: kind is {found!r}; expected {cls.KIND!r}")
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error, cls)}") from None

    def to_json(self) -> str:
        """The document as JSON text, two spaces, one newline at the end."""
        try:
            return self.model_dump_json(indent=2) + "\n"
        except PydanticSerializationError:  # a name that is no text, as file systems have them: "?" where it is not
            text = json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False)
            return text.encode(errors="replace").decode() + "\n"

    def write(self, path: Path) -> None:
        """Write the document to `path`: whole or not at all. Raises InputError when that cannot be done."""
        write_whole(path, self.to_json())


def write_whole(path: Path, text: str) -> None:
    """Put `text` at `path` through a temporary file beside it and a rename. Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(scratch, 0o666 & ~present_umask())
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def present_umask() -> int:
    """The umask of this process; the only way to read it is to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def describe(error: ValidationError, document: type[Document]) -> str:
    """Say the first fault of a ValidationError in one line: where in the document, what, what was expected."""
    # an unknown field first: where a name is misspelt, the field that it should have been is missing as well
    first = min(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    # a name with a line break or the like is shown as Python writes it: the message stays one line
    parts = [str(part) if str(part).isprintable() else repr(part) for part in first["loc"]]
    place = ".".join(parts) or document.KIND
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = ", ".join(fields_at(document, first["loc"][:-1]))
        return f"{place}: unknown field; expected one of {known}{more}"
    if first["type"] == "missing":
        return f"{place}: missing field{more}"
    message = first["msg"].removeprefix("Value error, ")
    found = "" if first["type"] == "value_error" else f", found {shorten(first['input'])}"
    return f"{place}: {message}{found}{more}"


def fields_at(document: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """The field names that the JSON Schema of `document` allows at `place` (names, list indices, keys of a map)."""
    schema = document.model_json_schema()
    node = schema
    for part in place:
        node = resolve(node, schema)
        if isinstance(part, int):
            node = node["items"]
        else:
            node = node["properties"][part] if "properties" in node else node["additionalProperties"]
    return sorted(resolve(node, schema)["properties"])


def resolve(node: dict, schema: dict) -> dict:
    """Follow `$ref`, and the one object, list or map within `anyOf` (an optional part), to the schema itself."""
    for choice in node.get("anyOf", []):
        if choice.keys() & {"$ref", "items", "additionalProperties"}:
            node = choice
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return node


def shorten(value: Any, limit: int = 60) -> str:
    """`value` as it would be written in Python, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
