"""EngineReport: the serving engine that is installed in this environment."""

from typing import ClassVar, Literal

from appliance.documents.base import Document


class EngineReport(Document):
    KIND: ClassVar[str] = "EngineReport"
    kind: Literal["EngineReport"] = "EngineReport"
    name: Literal["sglang"] = "sglang"
    version: str | None
    """Installed version of the engine; null if it is not installed."""
    python: str
    packages: dict[str, str | None]
    """Installed version of each package that matters to serving; null if it is not installed."""
    sources: dict[str, str] = {}
