"""`appliance plan` from a pipe, from files, and on bad input."""

import json
import subprocess

import pytest

from appliance.documents import Plan, Recon
from tests.helpers.cli import APPLIANCE, appliance, refused
from tests.helpers.gpu_machines import FIXTURES, RTX_TEXT, V4_FOLDER


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A Recon document of the reference machine and V4-Flash."""
    path = tmp_path_factory.mktemp("recon") / "recon.json"
    done = appliance("recon", "--from", RTX_TEXT, "--model", V4_FOLDER, "--json", timeout=120)
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)
    return path


def test_recon_and_plan_in_one_line_give_the_modules_configuration():
    recon = f"{' '.join(APPLIANCE)} recon --from {RTX_TEXT} --model {V4_FOLDER} --json"
    plan = f"{' '.join(APPLIANCE)} plan --from - --format nix"
    settings = "--model-path /var/lib/sglang-models/DeepSeek-V4-Flash --served-name deepseek-v4-flash"
    done = subprocess.run(f"{recon} | {plan} {settings}", shell=True, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (FIXTURES / "8x-rtx-pro-6000.nix").read_text()


def test_the_engine_is_reported_for_the_machines_gpus_and_the_models_family(reports):
    found = Recon.read(reports)
    assert (found.engine.arch, found.engine.family) == ("sm_120", "deepseek_v4")


def test_nothing_planned_repeats_what_the_engine_forces(reports):
    found = Recon.read(reports)
    forced = {setting.name for setting in found.engine.forced if not setting.when}
    plan = Plan.parse(appliance("plan", "--from", reports, "--format", "json").stdout, where="stdout")
    for worker in plan.workers:
        assert not forced & {*worker.args, *worker.env}


def test_the_table_reads_in_80_columns(reports):
    table = appliance("plan", "--from", reports).stdout
    assert max(map(len, table.splitlines())) <= 80
    for words in (
        "prefill  prefill  0,1,2,3  0",
        "KV cache 0->4, 1->5, 2->6, 3->7",
        "what physics allows at best",
        "single (TP8): fits",
    ):
        assert words in table


def test_single_reports_in_place_of_a_recon(reports, tmp_path):
    found = json.loads(reports.read_text())
    for name in ("machine", "engine", "model"):
        (tmp_path / f"{name}.json").write_text(json.dumps(found[name]))
    files = {option: tmp_path / f"{option[2:]}.json" for option in ("--machine", "--engine", "--model")}
    words = [word for option, path in files.items() for word in (option, path)]
    apart = appliance("plan", *words, "--format", "json")
    assert apart.stdout == appliance("plan", "--from", reports, "--format", "json").stdout
    text = appliance("plan", "--machine", RTX_TEXT, "--model", V4_FOLDER, "--format", "json", "--topology", "single")
    assert json.loads(text.stdout)["workers"][0]["gpus"] == list(range(8))


def test_some_gpus_alone(reports):
    plan = json.loads(appliance("plan", "--from", reports, "--gpus", "0-1,4,5", "--format", "json").stdout)
    assert [worker["gpus"] for worker in plan["workers"]] == [[0, 1], [4, 5]]


def test_what_does_not_fit_ends_with_1_and_writes_nothing(reports, tmp_path):
    output = tmp_path / "plan.json"
    done = appliance("plan", "--from", reports, "--gpus", "0", "--output", output)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("error: no plan: ") and "GiB" in done.stderr
    assert not output.exists()


def test_bad_input_is_refused_in_one_line(reports, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text("")
    assert "empty.json: not JSON" in refused("plan", "--from", empty)
    assert "--gpus '0-x': not a list of GPUs" in refused("plan", "--from", reports, "--gpus", "0-x")
    assert "no GPU 9; expected some of 0, 1" in refused("plan", "--from", reports, "--gpus", "9")
    assert "--context 9000000: the model has 1048576 tokens" in refused(
        "plan", "--from", reports, "--context", "9000000"
    )
    assert "not an absolute path" in refused("plan", "--from", reports, "--model-path", "here")
    assert "no model to plan for; expected --model REF" in refused("plan", "--machine", RTX_TEXT)
    done = subprocess.run([*APPLIANCE, "plan", "--from", "-"], input=b"\xff", capture_output=True)
    assert done.returncode == 2 and b"stdin: not UTF-8" in done.stderr


def test_a_report_given_twice_is_bad_usage(reports):
    done = appliance("plan", "--from", reports, "--model", V4_FOLDER)
    assert done.returncode == 2 and "--model and --from both have that report" in done.stderr
