"""What `plan --format nix` prints is taken by the module, and comes out as the same plan."""

import json

import pytest

from appliance.documents import Plan
from appliance.plan.nix_text import nix_text
from tests.helpers.gpu_machines import rtx_machine
from tests.helpers.nix_module import evaluate
from tests.plan.test_gpu import plan

DECIDED = {"topology", "model", "engine", "host", "workers", "router", "start_timeout_s", "stop_timeout_s"}


def decided(found: Plan) -> dict:
    """What a plan decides, arguments in the order of their names: the module sorts them."""
    data = found.model_dump(mode="json", include=DECIDED)
    for part in [*data["workers"], *([data["router"]] if data["router"] else [])]:
        part.pop("reasons")
        part.pop("host", None)
        words = " ".join(part["args"]).split("--")
        part["args"] = sorted(word.strip() for word in words if word)
    data["workers"].sort(key=lambda worker: worker["name"])
    return data


@pytest.mark.parametrize("topology", ["pd", "replicas", "single"])
@pytest.mark.parametrize("draft_tokens", [None, 3])
def test_the_module_makes_the_planned_plan(topology, draft_tokens):
    planned = plan(rtx_machine(), topology=topology, draft_tokens=draft_tokens, model_path="/var/lib/sglang-models/v4")
    made = evaluate(nix_text(planned))
    assert made["refused"] == []
    written = Plan.parse(json.dumps(json.loads(made["etc"]["sglang-appliance/plan.json"])), where="plan.json")
    assert decided(written) == decided(planned)
    assert written.identity() == planned.identity()
