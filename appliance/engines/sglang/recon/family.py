"""The tables of model families: which kernel runs which step, and what in the source that rests on."""

import tomllib
from importlib.resources import files

from pydantic import ValidationError

from appliance.documents import Part
from appliance.engines.sglang.recon.anchors import Anchor
from appliance.errors import InputError

GENERIC = "generic"
TABLES = files("appliance.engines.sglang.recon") / "families"


class Row(Part):
    """One step on one or several architectures."""

    step: str
    when: str | None = None
    arch: list[str] = []
    """sm_120 or, for every minor version, sm_12x; empty: all."""
    kernel: str
    package: str | None = None
    library: str | None = None
    """Pattern (fnmatch) of the shipped library's file that holds the kernel's code."""
    compiled_by: str | None = None
    fallback: str | None = None
    force: list[str] = []
    note: str | None = None
    rests_on: list[Anchor]

    def holds_for(self, arch: str) -> bool:
        """Whether the row is about `arch` (sm_120)."""
        return covers(self.arch, arch)


class Limit(Part):
    """A number, or a set of numbers, that a module or a class of a library's source gives a name to."""

    name: str
    arch: list[str] = []
    package: str
    file: str
    within: str = ""
    variable: str


class Family(Part):
    """A model family: whom it is for, and its rows."""

    name: str
    architectures: list[str] = []
    """Names of model classes, as `architectures` of a config.json has them."""
    written_for: str
    """The version of SGLang that the rows were written from; every other version is checked in the same way."""
    passes: list[str] = []
    """Functions outside the family's own provider that set its arguments: file:function."""
    limits: list[Limit] = []
    rows: list[Row]

    def of_class(self, architecture: str) -> "Family":
        """The same family for one model class: what the engine sets for it is looked up by that name."""
        return self.model_copy(update={"architectures": [architecture]})


def covers(architectures: list[str], arch: str) -> bool:
    """Whether `arch` (sm_120) is one of them; sm_12x stands for all minor versions, and an empty list for all."""
    return not architectures or arch in architectures or f"{arch[:-1]}x" in architectures


def names() -> list[str]:
    """The families that there are tables for."""
    return sorted(table.name.removesuffix(".toml") for table in TABLES.iterdir() if table.name.endswith(".toml"))


def load(name: str) -> Family:
    """The table of a family. Raises InputError for a name that is none."""
    if name not in names():
        raise InputError(f"no model family {name!r}; expected one of {', '.join(names())}")
    return parse((TABLES / f"{name}.toml").read_text(encoding="utf-8"), name)


def parse(text: str, name: str) -> Family:
    """Read a table. Raises InputError with what is wrong in it."""
    try:
        return Family.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"table of {name}: {' '.join(str(error).split())}") from None


def of_architecture(architecture: str | None) -> str:
    """The family of a model class, as `architectures` of a config.json names it."""
    return next((name for name in names() if architecture in load(name).architectures), GENERIC)
