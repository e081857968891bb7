"""The kernels' plugin in a real server on the CPU, where no kernel runs: what `up` and `verify identity` say."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.engines.sglang.cpu import STANDINS
from tests.helpers.cli import appliance

KERNELS = Path(__file__).parents[2] / "pkgs" / "kernels"
ENTRY_POINT = "[sglang.srt.plugins]\nappliance_kernels = appliance_kernels.engine.plugin:register\n"


@pytest.fixture
def installed(tmp_path):
    """PYTHONPATH of a server beside which the package is installed."""
    metadata = tmp_path / "site" / "appliance_kernels-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: appliance-kernels\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINT)
    return os.pathsep.join(map(str, (STANDINS, metadata.parent, KERNELS)))


@pytest.fixture
def workers(make_plan, installed):
    """The workers of a plan with one server, with variables."""

    def make(**env):
        [worker] = make_plan("single").workers
        env = worker.env | {"PYTHONPATH": installed} | {name: str(value) for name, value in env.items()}
        return [worker.model_copy(update={"env": env})]

    return make


@pytest.fixture
def identity(run, workers):
    """Start one server with variables, and return what `verify identity` says of it, and its log."""

    def verify(**env):
        server = run("single", workers=workers(**env))
        return appliance("verify", "identity", server.plan_file), (server.state_dir / "logs/single.log").read_text()

    return verify


def test_a_plugin_without_its_library_does_not_get_to_serve(make_plan, workers, tmp_path, leaves_nothing):
    plan = make_plan(
        "single", workers=workers(APPLIANCE_KERNELS="on", APPLIANCE_KERNELS_LIBRARY=tmp_path / "absent.so")
    )
    plan.write(tmp_path / "plan.json")
    done = appliance("up", tmp_path / "plan.json", "--state-dir", tmp_path / "state")
    assert done.returncode == 1
    assert (
        "all workers are ready, but not as planned: single: APPLIANCE_KERNELS is planned on; "
        "the server reports its kernels failed (no kernel library at"
    ) in done.stderr
    assert "appliance kernels: failed: no kernel library at" in (tmp_path / "state/logs/single.log").read_text()


def test_an_active_plugin_holds_the_assertion(identity, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc, to build the kernel library")
    subprocess.run([KERNELS / "build.sh", tmp_path / "library"], check=True, timeout=600)
    library = tmp_path / "library" / "libappliance_kernels.so"
    done, log = identity(APPLIANCE_KERNELS="on", APPLIANCE_KERNELS_LIBRARY=library)
    assert done.returncode == 0, done.stdout
    assert log.count("appliance kernels: active: flash_mla_with_kvcache_sm120") == 1


def test_switched_off_as_planned(identity):
    done, log = identity(APPLIANCE_KERNELS="off")
    assert done.returncode == 0, done.stdout
    assert "appliance kernels: off: APPLIANCE_KERNELS=off" in log
