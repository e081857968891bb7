"""Every example as units, plan and other files, word for word; and what systemd says of them."""

import json
import os
import re

import pytest

from appliance.documents import Plan
from tests.helpers.nix_module import PROJECT, STANDIN, evaluate, example, examples, in_nix_environment

GOLDEN = PROJECT / "tests/nix/module/golden"
WRITE_SETTING = "APPLIANCE_WRITE_GOLDEN"


def files_of(name: str, **changes) -> dict[str, str]:
    """The units and the files in /etc that an example makes, but the dashboard, which is a file of its own."""
    found = evaluate(example(name), **changes)
    assert found["refused"] == []
    etc = {path.replace("/", "-"): text for path, text in found["etc"].items() if "grafana" not in path}
    return found["units"] | {path: json.dumps(json.loads(text), indent=2) + "\n" for path, text in etc.items()}


@pytest.mark.parametrize("name", examples())
def test_an_example_makes_the_files_that_were_looked_at(name):
    folder, found = GOLDEN / name, files_of(name)
    if os.environ.get(WRITE_SETTING):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, text in found.items():
            (folder / file).write_text(text)
    expected = {path.name: path.read_text() for path in folder.iterdir()}
    assert sorted(found) == sorted(expected)
    for file, text in expected.items():
        assert found[file] == text, f"{file}: {WRITE_SETTING}=1 writes it anew, if that is what it should be"


@pytest.mark.parametrize("name", examples())
def test_the_stand_in_makes_what_the_real_library_makes(name, real_lib):
    assert evaluate(example(name), lib=STANDIN) == evaluate(example(name), lib=real_lib)


@pytest.mark.parametrize("name", examples())
def test_the_plan_in_etc_is_a_plan(name):
    plan = Plan.parse(evaluate(example(name), "etc")["sglang-appliance/plan.json"], where="plan.json")
    assert plan.topology == {"pd-8-gpus": "pd", "replicas": "replicas", "one-gpu": "single"}[name]


@pytest.mark.parametrize("name", examples())
def test_systemd_finds_no_fault(name, tmp_path):
    tools = tmp_path / "package/bin"
    tools.mkdir(parents=True)
    for command in ("appliance", "hf"):
        (tools / command).write_text("#!/bin/sh\n")
        (tools / command).chmod(0o755)
    units = evaluate(example(name), "units", package=str(tmp_path / "package"), system="")
    for unit, text in units.items():
        (tmp_path / unit).write_text(text)
    done = in_nix_environment("systemd-analyze", "verify", "--man=no", *sorted(tmp_path / unit for unit in units))
    said = [line for line in done.stderr.splitlines() if re.search(r"sglang-|Unknown|Failed", line)]
    assert (done.returncode, said) == (0, [])


def test_a_change_of_decode_leaves_prefill_running():
    changed = example("pd-8-gpus", "workers.decode.settings.max-running-requests = 64;")
    before, after = evaluate(example("pd-8-gpus"), "units"), evaluate(changed, "units")
    # NixOS restarts what differs
    assert {name for name in before if before[name] != after[name]} == {
        "sglang-decode.service",
        "sglang-ready.service",
    }
