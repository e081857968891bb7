import json
import os
import signal
import subprocess

import psutil
import pytest

from appliance.documents import EngineReport
from tests.helpers.cli import APPLIANCE, appliance, refused, wait_for


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> dict:
    """An environment with a cache folder that these tests share: what takes long is found once."""
    return {"APPLIANCE_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


def test_the_document_alone_is_on_stdout_and_nothing_in_it_is_absent_for_want_of_trying(cache):
    done = appliance("recon", "engine", "--arch", "sm_120", "--family", "deepseek_v4", "--json", env=cache)
    assert done.returncode == 0, done.stderr
    report = EngineReport.parse(done.stdout, where="stdout")
    assert (report.arch, report.family) == ("sm_120", "deepseek_v4")
    assert all(step.kernel for step in report.steps)
    assert {place.split(": ")[0] for place in report.sources.values() if place.startswith("absent")} <= {"absent"}
    assert len(report.gates) > 300 and len(report.options) > 500 and report.forced and report.pins
    assert next(setting for setting in report.forced if setting.name == "--kv-cache-dtype").default == "auto"


def test_the_table_reads_in_80_columns(cache):
    done = appliance("recon", "engine", "--arch", "12.0", "--family", "deepseek_v4", env=cache)
    assert done.returncode == 0, done.stderr
    for heading in ("Steps", "Set by the engine itself", "Shipped GPU code", "NIXL backends"):
        assert heading in done.stdout
    # a path is never broken in two: it could not be copied
    assert not [line for line in done.stdout.splitlines() if len(line) > 80 and len(line.split()) > 2]


def test_the_family_follows_from_the_model(cache, demo_model, tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["DeepseekV4ForCausalLM"]}')
    for model, family in {tmp_path: "deepseek_v4", demo_model: "generic"}.items():
        done = appliance("recon", "engine", "--arch", "sm_90", "--model", model, "--json", env=cache)
        assert json.loads(done.stdout)["family"] == family


def test_bad_input_is_refused_in_one_line(tmp_path):
    assert "'hopper' is no GPU architecture" in refused("recon", "engine", "--arch", "hopper")
    assert "no model family 'x'; expected one of" in refused("recon", "engine", "--family", "x")
    assert "expected a model folder or org/name" in refused("recon", "engine", "--model", tmp_path / "none")


def test_an_interrupt_leaves_no_child(tmp_path):
    env = os.environ | {"APPLIANCE_CACHE_DIR": str(tmp_path)}
    program = subprocess.Popen(
        [*APPLIANCE, "recon", "engine", "--arch", "sm_120"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env
    )
    me = psutil.Process(program.pid)
    wait_for(lambda: len(me.children()) >= 2, 30, "probes in processes of their own")
    children = me.children(recursive=True)
    program.send_signal(signal.SIGINT)
    assert program.wait(10) == 130
    gone, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    assert b"Traceback" not in program.stderr.read()
