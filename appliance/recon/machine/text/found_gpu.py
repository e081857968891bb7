"""What one text says about GPUs, before several texts are put together: facts by field name, keyed by index."""

from appliance.documents.machine import Gpu, PcieLink

Facts = dict[str, object]
"""Fields of a Gpu that a text gives, without those that it does not; `pcie` as a dict of its own."""


def put_together(parts: list[dict[int, Facts]]) -> list[Gpu]:
    """GPUs in index order, each field from the first part that has it. An index that no part names does not exist."""
    merged: dict[int, Facts] = {}
    for part in parts:
        for index, facts in part.items():
            gpu = merged.setdefault(index, {})
            for name, value in facts.items():
                if name == "pcie":
                    gpu["pcie"] = value | gpu.get("pcie", {})
                elif value is not None and gpu.get(name) is None:
                    gpu[name] = value
    return [as_gpu(index, merged[index]) for index in sorted(merged)]


def as_gpu(index: int, facts: Facts) -> Gpu:
    """A Gpu from its facts."""
    rest = {name: value for name, value in facts.items() if name != "pcie"}
    return Gpu(index=index, pcie=PcieLink(**facts.get("pcie", {})), **rest)
