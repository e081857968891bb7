"""A GPU architecture by its compute capability, and which machine code runs on it."""

import re
from dataclasses import dataclass

from appliance.errors import InputError
from appliance.recon.absent import Absent

NAME = re.compile(r"(?:sm_?|compute_)?(\d{1,2})\.?(\d)[af]?")
TARGET = re.compile(r"(?:sm_|compute_)?(\d{1,3})(\d)([af]?)")


@dataclass(frozen=True, order=True)
class Arch:
    """A compute capability, such as 12.0; `sm_120` in the names of CUDA's tools."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> "Arch":
        """Read sm_120, sm_120a, compute_120, 120 or 12.0. Raises InputError."""
        found = NAME.fullmatch(text.strip().lower())
        if not found or not 3 <= int(found[1]) <= 30:
            raise InputError(f"{text!r} is no GPU architecture; expected one such as sm_120, 120 or 12.0")
        return cls(int(found[1]), int(found[2]))

    @property
    def name(self) -> str:
        """The name that cuobjdump and nvcc use."""
        return f"sm_{self.major}{self.minor}"


def of_gpus(capabilities: list[str | None]) -> Arch:
    """The one architecture of GPUs with these compute capabilities (12.0). Raises Absent where there is none."""
    try:
        known = sorted({Arch.parse(capability) for capability in capabilities if capability})
    except InputError as error:
        raise Absent(f"{error}; expected --arch") from None
    if len(known) > 1:
        raise Absent(f"GPUs of several architectures ({', '.join(arch.name for arch in known)}): expected --arch")
    if not known or not all(capabilities):
        raise Absent("no GPU here tells its architecture: expected --arch")
    return known[0]


def runs_on(target: str, arch: Arch) -> bool:
    """Whether machine code for `target` (sm_80, sm_90a, sm_120f) runs on `arch`.

    CUDA's rules (NVCC's documentation, "GPU Feature List" and "Family-Specific Features"): plain code runs on the same
    major version from its minor version on; code for `f` within its family, which is the same; code for `a` on that
    one architecture. False for a name that is none.
    """
    return allows(target, arch, lambda built: built.major == arch.major and built.minor <= arch.minor)


def compiles_for(target: str, arch: Arch) -> bool:
    """Whether the driver can compile PTX for `target` (compute_90, sm_90a as cuobjdump writes it) for `arch`.

    Plain PTX serves that capability and all later ones; `f` its family; `a` that one architecture.
    """
    return allows(target, arch, lambda built: built <= arch)


def allows(target: str, arch: Arch, plain) -> bool:
    """The rules that machine code and PTX share; `plain` decides where there is no suffix."""
    found = TARGET.fullmatch(target)
    if not found:
        return False
    built = Arch(int(found[1]), int(found[2]))
    if found[3] == "a":
        return built == arch
    if found[3] == "f":
        return built.major == arch.major and built.minor <= arch.minor
    return plain(built)
