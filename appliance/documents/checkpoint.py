"""CheckpointManifest: the files of a fetched checkpoint, with what a later start needs to know them again."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from appliance.documents.base import Document, Part, Text

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


def outside(name: str) -> bool:
    """Whether a file's name is no plain path below the checkpoint's folder."""
    parts = name.split("/")
    return not name.isprintable() or any(part in ("", ".", "..") for part in parts)


class ManifestFile(Part):
    """One file. `mtime_ns` is its time of change when its content was last found to be that of `sha256`."""

    name: Text
    size: Annotated[int, Field(ge=0)]
    sha256: Sha256
    mtime_ns: int

    @model_validator(mode="after")
    def inside(self) -> Self:
        if outside(self.name):
            raise ValueError(f"name {self.name!r} lies outside the checkpoint; expected a path below its folder")
        return self


class CheckpointManifest(Document):
    """Every file of one revision of a model, each found to have the content that the hub lists."""

    KIND: ClassVar[str] = "CheckpointManifest"
    kind: Literal["CheckpointManifest"] = "CheckpointManifest"
    model: Text
    """Repository on the hub, "org/name"."""
    revision: Commit
    written: str
    """When, ISO 8601, UTC."""
    files: list[ManifestFile]

    @model_validator(mode="after")
    def each_once(self) -> Self:
        names = [file.name for file in self.files]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{twice!r} is listed twice; expected each file once")
        return self

    def bytes(self) -> int:
        """Sum of the sizes of all files."""
        return sum(file.size for file in self.files)


class FetchOutlook(Document):
    """What a fetch would do, before it does it. Sizes in bytes."""

    KIND: ClassVar[str] = "FetchOutlook"
    kind: Literal["FetchOutlook"] = "FetchOutlook"
    model: str
    revision: str
    folder: str
    """Where the files will be."""
    files: int
    size: int
    """Of the whole checkpoint."""
    there: int
    """Of that, what is here already: whole files, and parts that a fetch left behind."""
    to_fetch: int
    to_write: int
    """Disk blocks that it takes; less than `to_fetch` never, more by the rounding of each file."""
    free: int
    """On the file system of `folder`, for this user. Other revisions are kept, so their space is not counted."""
