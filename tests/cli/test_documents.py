import json

from appliance.documents import Recon
from tests.helpers.cli import appliance


def output_of(*words) -> dict:
    done = appliance(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_schema_of_one_and_of_all():
    assert output_of("schema", "Plan")["title"] == "Plan"
    assert set(output_of("schema")) >= {"Plan", "MachineReport", "ModelReport", "EngineReport", "RunRecord"}


def test_recon_of_all_is_one_document(demo_model):
    found = Recon.parse(json.dumps(output_of("recon", "--model", demo_model, "--json")), where="stdout")
    assert found.machine and found.engine.family == "generic" and found.model.architecture == "LlamaForCausalLM"
    assert found.problems == {}


def test_recon_of_one():
    assert output_of("recon", "machine", "--json")["kind"] == "MachineReport"


def test_a_plan_is_written_and_shown(demo_model, tmp_path):
    path = tmp_path / "plan.json"
    plan = output_of("plan", "--model", demo_model, "--format", "json", "--output", path, "--base-port", "41000")
    assert json.loads(path.read_text()) == plan
    assert plan["router"]["port"] == 41000
    table = appliance("plan", "--model", demo_model, "--topology", "replicas").stdout
    assert "replica-0" in table and "cache_aware" in table
