"""Parts of the EngineReport that were read from the engine's source."""

from typing import Literal

from appliance.documents.base import Part


class KernelStep(Part):
    """A step of a model's forward pass (or of its service) and the kernel that runs it on an architecture."""

    step: str
    when: str | None = None
    """The case that this kernel is for; null: always."""
    kernel: str | None
    """Null where the installed source is not what the table was checked against: unknown, never guessed."""
    reason: str | None = None
    """Why the kernel is unknown."""
    decided_at: str | None = None
    """file:line of the decision, in the installed source."""
    defined_at: str | None = None
    """file:line of the kernel's entry point."""
    evidence: list[str] = []
    """file:line of everything else in the source that the statement rests on."""
    fallback: str | None = None
    force: list[str] = []
    """Variables and flags that choose otherwise, as NAME=VALUE."""
    note: str | None = None
    package: str | None = None
    """The distribution that carries the kernel."""
    package_installed: str | None = None
    compiled_by: str | None = None
    """What compiles the kernel at run time; null where it is shipped compiled."""
    can_compile: bool | None = None
    """Whether the tools for that are here, for this architecture; null where nothing is compiled."""
    shipped_code_serves: bool | None = None
    """Whether the shipped binary runs on the architecture; null where none is used or it was not read."""
    lacking: list[str] = []
    """What is missing here for the kernel to run, in words."""


class KernelLimit(Part):
    """A bound within which a library's kernels serve, read from the library's source."""

    name: str
    values: list[int] | None
    """One number, or the numbers that there is an instance for; null where it could not be read."""
    where: str | None = None
    reason: str | None = None
    """Why values is null."""


class ArchGate(Part):
    """A place in the engine's source that depends on the compute capability."""

    where: str
    within: str | None
    kind: Literal["definition", "condition", "value"]
    code: str
    value: bool | int | str | None
    """What it comes to on the report's architecture (an NVIDIA GPU, CUDA 13); null where more than that decides."""


class ForcedSetting(Part):
    """An argument or variable that the engine itself sets for a model family."""

    name: str
    """A flag (--page-size) or a variable (SGLANG_...)."""
    value: str | None
    """Null where the source computes it."""
    expression: str
    when: list[str]
    """Conditions in the source that are left open by family and architecture, in its own words."""
    unless_set: bool = False
    """Whether a user's own value wins."""
    default: str | None = None
    """The value without it; null where the option is not known."""
    where: str


class ServerOption(Part):
    """An option of the engine's command line."""

    flag: str
    default: str | None
    choices: list[str] | None = None
    where: str | None = None
    """file:line of its definition."""
