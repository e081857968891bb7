"""Profiles of running engines on the CPU: operators, and experts by SGLang's own recorder; no statement on speed."""

import json

import pytest

from appliance.documents import ProfileReport
from appliance.plan.cpu import plan_on_cpu
from appliance.recon.engine import engine_report
from appliance.recon.machine import machine_report
from appliance.recon.model import model_report
from tests.helpers.cli import appliance
from tests.helpers.moe_model import EXPERTS, LAYERS, TOP_K, write_moe_model
from tests.helpers.ports import free_range


@pytest.fixture
def moe(tmp_path, leaves_nothing):
    """A running worker of a tiny mixture of experts, with SGLang's recorder: plan file and the recorder's folder."""
    model, recorded, file = tmp_path / "moe", tmp_path / "recorded", tmp_path / "plan.json"
    write_moe_model(model)
    machine = machine_report().model_copy(update={"gpus": []})
    plan = plan_on_cpu("single", model_report(model), machine, engine_report(), served_name="moe", ports=free_range())
    (worker,) = plan.workers
    worker = worker.model_copy(
        update={
            "args": [*worker.args, "--expert-distribution-recorder-mode", "stat"],
            "env": worker.env | {"SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR": str(recorded)},
        }
    )
    plan.model_copy(update={"workers": [worker]}).write(file)
    up = appliance("up", file, "--detach", "--state-dir", tmp_path / "state")
    assert up.returncode == 0, up.stderr
    yield file, recorded
    appliance("down", "--state-dir", tmp_path / "state")


def test_operators_and_experts_of_a_running_mixture_of_experts(moe, tmp_path):
    plan, recorded = moe
    kept = tmp_path / "kept"
    words = ["--requests", "4", "--steps", "3", "--passes", "32", "--ep", "4", "--keep", kept]
    done = appliance("bench", "profile", plan, *words, "--json")
    assert done.returncode == 0, done.stderr
    report = ProfileReport.parse(done.stdout, where="stdout")
    (trace,) = report.traces
    assert trace.counts == "operators" and trace.gpu is None and not report.simulated
    assert [(step.name, step.count) for step in trace.steps] == [("step[DECODE bs=4]", 3)]
    assert {"aten::mm"} <= {one.name for one in trace.kernels}
    assert sum(one.share for one in trace.kernels) == pytest.approx(1)
    assert any("nothing about a GPU" in remark for remark in report.remarks)

    load = report.experts
    assert load.passes >= 30 and load.experts == EXPERTS and len(load.layers) == LAYERS
    assert load.batches[0].assignments == pytest.approx(4 * TOP_K, rel=0.1)
    contiguous = next(one for one in load.placements if one.name == "EP, contiguous")
    assert contiguous.ranks == 4 and contiguous.busiest_rank_share > 0.25 and contiguous.balancedness < 1
    assert sorted(path.suffix for path in kept.iterdir()) == [".gz", ".pt"] and not list(recorded.iterdir())

    files = [word for path in kept.iterdir() for word in ("--from", path)]
    again = appliance("bench", "profile", *files, "--ep", "4", "--json")
    saved = json.loads(again.stdout)
    assert saved["traces"] == json.loads(done.stdout)["traces"]
    assert saved["experts"] == json.loads(done.stdout)["experts"]


def test_the_decode_worker_of_a_pair_is_profiled_while_it_decodes(run):
    pair = run("pd")
    done = appliance("bench", "profile", pair.plan_file, "--requests", "2", "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert "worker decode of plan" in done.stdout and "3 x step[DECODE bs=2]" in done.stdout
    assert "experts:" not in done.stdout  # the demo's model has none
