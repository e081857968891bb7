"""`appliance preflight` as a user calls it."""

import json

import pytest

from appliance.documents import Findings
from appliance.preflight.catalogue import catalogue
from tests.helpers.cli import appliance, refused
from tests.helpers.healthy import engine, gpu, machine, model, plan


@pytest.fixture
def saved(tmp_path):
    """Files of the healthy machine, its engine, model and plan; and of the machine with a small BAR1."""
    small = machine(gpus=[gpu(index, bar1_mib=256) for index in range(8)])
    for name, document in {
        "machine": machine(),
        "small": small,
        "engine": engine(),
        "model": model(),
        "plan": plan(),
    }.items():
        document.write(tmp_path / f"{name}.json")
    return tmp_path


def test_the_healthy_machine_passes(saved):
    options = [word for name in ("machine", "engine", "model") for word in ("--from", saved / f"{name}.json")]
    done = appliance("preflight", *options, "--plan", saved / "plan.json", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = Findings.parse(done.stdout, "stdout")
    assert findings.machine == "reference" and findings.plan_identity == plan().identity()
    assert findings.worst() is None
    assert {result.rule for result in findings.results} == catalogue().keys()


def test_an_error_is_exit_code_1_with_evidence_and_fix(saved):
    done = appliance("preflight", "--from", saved / "small.json")
    assert done.returncode == 1
    assert "error   BAR1 is smaller than the GPU's memory (bar1-small)" in done.stdout
    assert "GPU 7: BAR1 256 MiB, memory 97887 MiB" in done.stdout
    assert "fix: BIOS: Above 4G decoding" in done.stdout


def test_a_rule_may_be_left_out_with_a_reason_that_is_recorded(saved):
    done = appliance("preflight", "--from", saved / "small.json", "--skip", "bar1-small=no peers", "--json")
    assert done.returncode == 0
    by_rule = {result.rule: result for result in Findings.parse(done.stdout, "stdout").results}
    assert (by_rule["bar1-small"].status, by_rule["bar1-small"].reason) == ("skipped", "no peers")


def test_only_what_is_asked_for_is_checked(saved):
    done = appliance(
        "preflight", "--from", saved / "small.json", "--only", "gpu-hot", "--only", "gpus-unlike", "--json"
    )
    assert done.returncode == 0
    assert [result.rule for result in Findings.parse(done.stdout, "stdout").results] == ["gpu-hot", "gpus-unlike"]


def test_pasted_text_is_read_from_stdin_too(saved):
    import subprocess

    from tests.helpers.cli import APPLIANCE

    text = "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-2e71a14e-50fb-5ddc-b64e-9d7a4e7e1000)\n"
    done = subprocess.run(
        [*APPLIANCE, "preflight", "--from", "-", "--only", "gpus-unlike"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0 and "1 does not apply" in done.stdout


def test_a_report_is_known_by_its_kind_wherever_that_stands(saved):
    text = json.loads((saved / "engine.json").read_text())
    (saved / "sorted.json").write_text(json.dumps(text, sort_keys=True, separators=(",", ":")))
    words = ["--from", saved / "sorted.json", "--plan", saved / "plan.json", "--only", "unknown-flags"]
    assert "1 ok" in appliance("preflight", *words).stdout


def test_sarif_is_one_json_document(saved):
    done = appliance("preflight", "--from", saved / "small.json", "--format", "sarif")
    assert done.returncode == 1
    assert json.loads(done.stdout)["version"] == "2.1.0"


def test_list_and_explain():
    listing = appliance("preflight", "--list").stdout.splitlines()
    assert len(listing) == len(catalogue())
    said = appliance("preflight", "--explain", "rank-map-splits-switch").stdout
    assert "37 GB/s become 2.7" in said and "needs:     plan, machine.gpus, machine.links" in said


def test_this_machine_is_looked_at_where_no_report_is_given():
    done = appliance("preflight", "--only", "cpus-offline", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = Findings.parse(done.stdout, "stdout").results
    assert result.status in ("ok", "finding")


def test_bad_usage_is_one_line(tmp_path):
    assert "no such file" in refused("preflight", "--from", tmp_path / "none.json")
    assert "no such file" in refused("preflight", "--plan", tmp_path / "none.json")
    assert "expected one of `preflight --list`" in refused("preflight", "--only", "no-such-rule")
    (tmp_path / "broken.json").write_text('{"kind": "Recon", "machine": 3}')
    assert "machine" in refused("preflight", "--from", tmp_path / "broken.json")
    for words in (["--skip", "bar1-small"], ["--from", "a", "--host", "b"], ["--probe", "--host", "b"]):
        done = appliance("preflight", *words)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
