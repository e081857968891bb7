"""The documents that rules look at, and the paths by which rules name what they need of them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from appliance.documents import EngineReport, MachineReport, ModelReport, Plan
from appliance.documents.probes import ProbeRecord

Place = tuple[str, object]
"""A place in a document, such as "machine.gpus[3].bar1_mib", and the value there."""


@dataclass(frozen=True)
class Facts:
    """What is known. A document that nobody gave is None."""

    machine: MachineReport | None = None
    engine: EngineReport | None = None
    model: ModelReport | None = None
    plan: Plan | None = None
    probes: ProbeRecord | None = None
    earlier: ProbeRecord | None = None
    """An earlier run's probes, to compare with."""


DOCUMENTS = [field.name for field in fields(Facts)]


def missing(facts: Facts, need: str) -> tuple[list[str], bool]:
    """(the places of `need` that are null, whether any has a value).

    `need` is a path such as "machine.gpus[].bar1_mib": "[]" stands for each element of a list. Of alternatives, written
    "machine.iommu|machine.kernel_settings.cmdline", one is enough. An empty list counts as known unless its document
    says that it was not looked for ("absent: ..." in its sources).
    """
    lacking: list[str] = []
    for path in need.split("|"):
        found = list(places(facts, path))
        nulls = [place for place, value in found if value is None]
        if not nulls:
            return [], True
        if len(nulls) < len(found):
            return nulls, True
        lacking += nulls
    return lacking, False


def places(facts: Facts, path: str) -> Iterator[Place]:
    """The places that `path` stands for, as deep as they go: a null on the way ends there."""
    root, _, rest = path.partition(".")
    yield from below(root, getattr(facts, root), rest.split(".") if rest else [])


def below(place: str, value: object, steps: list[str]) -> Iterator[Place]:
    """The places below one, step by step."""
    if value is None or not steps:
        yield place, value
        return
    name, each = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    inner = value.get(name) if isinstance(value, dict) else getattr(value, name)
    if each and inner is not None:
        if not inner and absent(value, name):
            yield f"{place}.{name}", None
        for index, element in enumerate(inner):
            yield from below(f"{place}.{name}[{index}]", element, steps[1:])
        return
    if inner == [] and absent(value, name):
        inner = None
    yield from below(f"{place}.{name}", inner, steps[1:])


def absent(document: object, field: str) -> str | None:
    """Why `document` has no value for `field`, as its sources say; None where they do not call it absent."""
    said = getattr(document, "sources", {}).get(field, "")
    return said.removeprefix("absent: ") if said.startswith("absent") else None


def why_absent(facts: Facts, place: str) -> str | None:
    """Why the document says that the fact at `place` is null; None where it does not say."""
    root, _, rest = place.partition(".")
    document = getattr(facts, root)
    if document is None:
        return None
    parts = [part.split("[")[0] for part in rest.split(".")]
    for length in range(len(parts), 0, -1):
        reason = absent(document, ".".join(parts[:length]))
        if reason:
            return reason
    return None
