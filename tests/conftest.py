import os
import tempfile
from pathlib import Path

import pytest

from appliance.demo.model import ensure_model
from appliance.documents import Plan
from appliance.plan.cpu import plan_on_cpu
from appliance.recon.engine import engine_report
from appliance.recon.machine import machine_report
from appliance.recon.model import model_report
from tests.helpers.leftovers import Leftovers
from tests.helpers.ports import free_range

CORPUS_SETTING = "APPLIANCE_CORPUS"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real public inputs, where it is present."""
    folder = Path(os.environ.get(CORPUS_SETTING) or "corpus-is-absent")
    if not folder.is_dir():
        pytest.skip(f"{CORPUS_SETTING} names no folder: the corpus of public inputs is not here")
    return folder


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory) -> Path:
    """The demo's model folder."""
    return ensure_model(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def make_plan(demo_model):
    """Make a plan for the demo's model on ports that are free now."""

    def make(topology: str, **changes) -> Plan:
        plan = plan_on_cpu(
            topology,
            model_report(demo_model),
            machine_report().model_copy(update={"gpus": []}),
            engine_report(),
            served_name="demo",
            ports=free_range(),
        )
        return plan.model_copy(update=changes)

    return make


@pytest.fixture
def leaves_nothing(tmp_path, monkeypatch):
    """Fails the test if a process, a port, shared memory or a temporary file of its runs is left after it."""
    # not below tmp_path: the path of a Unix socket has room for 107 characters
    with tempfile.TemporaryDirectory(prefix="test-") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        leftovers = Leftovers(tmp_path, Path(temporary))
        yield
        left = leftovers.found()
        assert not left, f"left behind: {sorted(left)}"
