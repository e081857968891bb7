"""Parts of the EngineReport about software around the engine: pins, tools, transfer backends."""

from typing import Literal

from appliance.documents.base import Part


class Pin(Part):
    """A requirement of the engine's own metadata, against what is installed."""

    package: str
    wanted: str | None
    """Version specifier; null where any version does."""
    extras: list[str] = []
    installed: str | None
    state: Literal["met", "other version", "absent"]


class Tool(Part):
    """A tool of run-time compilation."""

    name: str
    path: str | None
    version: str | None
    architectures: list[str] = []
    """nvcc alone: architectures that it compiles for, as sm_120."""
    reason: str | None = None
    """Why path or version is null."""


class TransferBackend(Part):
    """A NIXL plugin: `loads` where it makes a backend in an agent here, without any parameters."""

    name: str
    loads: bool
    reason: str | None = None


class TransportModule(Part):
    """A UCX transport module that NIXL ships, and whether it can be loaded (its libraries are here)."""

    name: str
    loads: bool
    reason: str | None = None
