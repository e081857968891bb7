import os
import signal
import subprocess

import psutil
import pytest

from appliance.documents import Recon
from tests.helpers import checkpoints
from tests.helpers.cli import APPLIANCE, appliance, wait_for
from tests.helpers.hub_server import REPO, Hub, serve

NOBODY = "nobody@127.0.0.1"


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> dict:
    """An environment with a cache folder that these tests share, and without a user's own settings of the hub."""
    folder = tmp_path_factory.mktemp("cache")
    return {"APPLIANCE_CACHE_DIR": str(folder), "HF_HOME": str(folder), "HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}


@pytest.fixture
def hub(tmp_path):
    """A hub with a small checkpoint."""
    tensors = checkpoints.moe_tensors(checkpoints.fp8_block, checkpoints.nvfp4)
    hub = Hub(checkpoints.write_checkpoint(tmp_path / "repo", checkpoints.moe_config(), tensors, 4))
    servers = serve(hub)
    yield hub
    for server in servers:
        server.shutdown()
        server.server_close()


def recon(*words: object, env: dict) -> tuple[Recon, str]:
    """The document that `recon WORDS --json` prints, and what it says on stderr."""
    done = appliance("recon", *words, "--json", env=env)
    assert done.returncode == 0, done.stderr
    return Recon.parse(done.stdout, where="stdout"), done.stderr


def test_three_reports_of_which_the_engines_is_about_the_models_class(cache, hub):
    found, _ = recon("--arch", "sm_120", "--model", REPO, env=cache | {"HF_ENDPOINT": hub.url})
    assert found.problems == {}
    assert (found.engine.arch, found.engine.family) == ("sm_120", "generic")
    assert found.model.architecture and found.machine.numa_nodes


def test_a_machine_out_of_reach_leaves_the_engine_what_does_not_need_it(cache):
    found, errors = recon("--host", f"{NOBODY}x", env=cache | {"HOME": "/nonexistent"})
    assert found.machine is None and found.problems.keys() == {"machine"}
    assert found.engine.version and found.engine.pins and found.engine.options
    assert found.engine.sources["steps"] == f"absent: the machine is not known: {found.problems['machine']}"
    # one reason is told once, whatever it keeps from being known
    assert errors.count("the machine is not known") == 1


def test_a_hub_out_of_reach_leaves_the_engine_what_does_not_need_the_model(cache):
    found, _ = recon("--arch", "sm_120", "--model", REPO, env=cache | {"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert found.model is None and found.machine is not None
    assert found.engine.gates and found.engine.options
    assert found.engine.sources["forced"] == f"absent: the model is not known: {found.problems['model']}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_hub_hangs_ends_all_at_once(tmp_path, hub, number):
    hub.hang_s = 60
    env = {"APPLIANCE_CACHE_DIR": str(tmp_path), "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_TOKEN": ""}
    program = subprocess.Popen(
        [*APPLIANCE, "recon", "--arch", "sm_120", "--model", REPO],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | env,
    )
    me = psutil.Process(program.pid)
    wait_for(lambda: any(host == "cdn" for host, _, _ in hub.requests), 30, "a request that hangs")
    children = me.children(recursive=True)
    program.send_signal(number)
    assert program.wait(5) == 130
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    assert b"Traceback" not in program.stderr.read()
