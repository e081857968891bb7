"""What a package's own metadata requires, against what is installed here."""

from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

from appliance.documents import Pin
from appliance.recon.engine.versions import installed


def pins(package: str) -> list[Pin]:
    """Every requirement of `package` that holds on this platform, extras left out. Raises PackageNotFoundError."""
    found = []
    for line in requires(package) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append(pin(requirement, installed(requirement.name)))
    return found


def pin(requirement: Requirement, version: str | None) -> Pin:
    """One requirement and the version that is installed. A local part such as +cpu does not count, as in pip."""
    if version is None:
        state = "absent"
    else:
        state = "met" if requirement.specifier.contains(version, prereleases=True) else "other version"
    return Pin(
        package=requirement.name,
        wanted=str(requirement.specifier) or None,
        extras=sorted(requirement.extras),
        installed=version,
        state=state,
    )


__all__ = ["PackageNotFoundError", "pin", "pins"]
