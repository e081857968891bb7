"""Recon: the reports of machine, engine and model, as one document to hand on."""

from typing import ClassVar, Literal

from appliance.documents.base import Document
from appliance.documents.engine import EngineReport
from appliance.documents.machine import MachineReport
from appliance.documents.model import ModelReport


class Recon(Document):
    """What reconnaissance found. A report that was not asked for, or could not be made, is null."""

    KIND: ClassVar[str] = "Recon"
    kind: Literal["Recon"] = "Recon"
    machine: MachineReport | None = None
    engine: EngineReport | None = None
    model: ModelReport | None = None
    problems: dict[str, str] = {}
    """Why a report that was asked for is null, by its name."""
