"""Where models, caches and stores lie, how much is free there, and which models are there."""

from appliance.documents.base import Part


class FileSystem(Part):
    path: str
    """The folder that was asked about."""
    purpose: str
    mount_point: str | None = None
    type: str | None = None
    """ext4, xfs, btrfs, zfs, nfs, overlay, ..."""
    size_bytes: int | None = None
    free_bytes: int | None = None


class ModelFolder(Part):
    path: str
    hub_id: str | None = None
    """org/name, for a snapshot within a hub cache."""
    revision: str | None = None
    architecture: str | None = None
    weight_files: int = 0
    weight_bytes: int = 0
    complete: bool | None = None
    """By names and sizes: no number of the shards missing, none empty, none a pointer, no download unfinished."""
    problems: list[str] = []
