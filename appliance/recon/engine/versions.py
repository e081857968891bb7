"""The engine that is installed in this environment, from package metadata: nothing heavy is imported."""

import platform
from importlib.metadata import PackageNotFoundError, version

from appliance.documents import EngineReport

PACKAGES = ["torch", "triton", "transformers", "nixl", "nixl-cu13", "smg", "flashinfer-python", "sglang-kernel"]


def engine_report() -> EngineReport:
    """Report SGLang's version and those of the packages around it; null where one is not installed."""
    return EngineReport(
        version=installed("sglang"),
        python=platform.python_version(),
        packages={name: installed(name) for name in PACKAGES},
        sources={"version": "package metadata", "packages": "package metadata", "python": "interpreter"},
    )


def installed(package: str) -> str | None:
    """Installed version of `package`, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
