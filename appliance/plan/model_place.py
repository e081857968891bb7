"""Where the model lies on the machine that serves it, and by what name requests ask for it."""

import os
import re

from appliance.documents import ModelReport, PlannedModel
from appliance.errors import InputError

HUB_MODELS = "/var/lib/sglang-models"
"""Folder of models that are fetched from the hub."""


def planned_model(model: ModelReport, path: str | None, served_name: str | None) -> PlannedModel:
    """The model of a plan: at `path`, else in its own folder, else below HUB_MODELS. Raises InputError."""
    name = model.path.rstrip("/").rsplit("/", 1)[-1]
    from_hub = model.origin == "hub"
    place = path or (f"{HUB_MODELS}/{name}" if from_hub else model.path)
    if not os.path.isabs(place):
        raise InputError(f"--model-path {place}: not an absolute path; expected one on the machine that serves")
    commit = model.revision if model.revision and re.fullmatch(r"[0-9a-f]{40}", model.revision) else None
    return PlannedModel(
        path=place,
        repo=model.path if from_hub and commit else None,
        revision=commit if from_hub else None,
        served_name=served_name or name,
    )
