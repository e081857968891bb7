"""RebuildRecord: the bits that parts had when they were recorded. RebuildReport: the bits they have now."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part


class RecordedPart(Part):
    """One store path as it was. Content may be equal from unequal derivations; an equal one must give equal content."""

    derivation: str
    """Store path of the derivation: stands for everything that Nix knows to go into the build."""
    nar_hash: str
    """SHA-256 of the content as Nix archives it, as `nix path-info` writes it (sha256-...)."""


class RebuildRecord(Document):
    KIND: ClassVar[str] = "RebuildRecord"
    kind: Literal["RebuildRecord"] = "RebuildRecord"
    date: str
    parts: dict[str, RecordedPart]


class RebuiltPart(Part):
    """One part, built again and compared byte for byte."""

    name: str
    rung: Literal[2, 3]
    """Of the claim ladder: 2 = bits of a download, unpacked; 3 = built from source."""
    derivation: str
    path: str
    nar_hash: str
    nar_size: int
    """Bytes."""
    repeats: bool
    """A second build in the same store gave the same bytes."""
    second_store: bool | None
    """A build in a store at another place gave the same bytes; null: not tried."""
    record: Literal["same", "other inputs", "none", "differs"]
    """Against the record; "other inputs": other content, but of another derivation."""
    differences: list[str] = []
    """What differs between two builds, first things first."""

    def holds(self) -> bool:
        return self.repeats and self.second_store is not False and self.record != "differs"


class RebuildReport(Document):
    KIND: ClassVar[str] = "RebuildReport"
    kind: Literal["RebuildReport"] = "RebuildReport"
    date: str
    nix: str
    """What `nix --version` says."""
    parts: list[RebuiltPart]

    def holds(self) -> bool:
        return all(part.holds() for part in self.parts)
