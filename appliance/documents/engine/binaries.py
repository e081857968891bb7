"""Parts of the EngineReport about compiled packages."""

from appliance.documents.base import Part


class Binary(Part):
    """A shipped library with code for GPUs, or one that could not be read."""

    package: str
    file: str
    """Path within the package's installation."""
    sha256: str
    machine_code: list[str]
    """Architectures of its machine code, as cuobjdump names them: sm_90a."""
    ptx: list[str]
    """Architectures of its PTX."""
    serves: bool | None = None
    """Whether it runs on the report's architecture; null where that is unknown."""
    by: str | None = None
    """What serves it: sm_120a, or PTX for sm_90; or why it does not."""
