"""Published figures of a GPU model, by the name that the driver gives the GPU."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from appliance.documents import Gpu
from appliance.documents.base import Part


class GpuModel(Part):
    """A row of gpus.toml, whose head says what each figure is. None: not published, or the model has no such thing."""

    name: str
    match: str
    compute_capability: str
    memory_gib: float | None = None
    memory_gb_s: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    fp4: float | None = None
    pcie_gb_s: float | None = None
    nvlink_gb_s: float | None = None
    source: str


@cache
def table() -> list[GpuModel]:
    """All rows, in the order in which they are tried."""
    text = (files("appliance.hardware") / "gpus.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["gpu"]
    figures = {name for name, field in GpuModel.model_fields.items() if field.annotation == (float | None)}
    return [GpuModel(**{key: float(value) if key in figures else value for key, value in row.items()}) for row in rows]


def gpu_model(name: str | None) -> GpuModel | None:
    """The row for a GPU called `name` by its driver ("NVIDIA H200"); None where there is none: nothing is guessed."""
    if name is None:
        return None
    return next((row for row in table() if re.search(row.match, name, re.IGNORECASE)), None)


def compute_capability(gpu: Gpu) -> str | None:
    """Compute capability ("12.0") by the machine's report, else by the data sheet of the model; None: not known."""
    sheet = gpu_model(gpu.name)
    return gpu.compute_capability or (sheet.compute_capability if sheet else None)
