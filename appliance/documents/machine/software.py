"""Versions of what is installed."""

from appliance.documents.base import Part


class Software(Part):
    os: str | None = None
    libc: str | None = None
    python: str | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    """The newest CUDA that the driver serves ("CUDA Version" of nvidia-smi); not a toolkit's version."""
    cuda_toolkit: str | None = None
    """Version of the toolkit or runtime that was found (nvcc, "CUDA runtime version")."""
    torch_cuda: str | None = None
    """The CUDA that torch was built with."""
    fabric_manager: str | None = None
    container_toolkit: str | None = None
    docker: str | None = None
    packages: dict[str, str] | None = None
    """Python packages that were found, by distribution name."""
