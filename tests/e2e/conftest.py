"""Real SGLang servers, real NIXL, the real router: nothing here is a stand-in but what the CPU engine labels so."""

import glob
from pathlib import Path

import pytest

from tests.helpers.cli import appliance

BESIDE_A_GPU = bool(glob.glob("/dev/nvidia[0-9]*"))


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.skipif(BESIDE_A_GPU, reason="the CPU engine refuses to run beside a GPU"))


@pytest.fixture(scope="session")
def reference(make_plan, tmp_path_factory) -> Path:
    """The golden answers of one aggregated server, as a GoldenRecord file."""
    folder = tmp_path_factory.mktemp("reference")
    plan_file, record = folder / "plan.json", folder / "golden.json"
    make_plan("single", stop_timeout_s=0.0).write(plan_file)
    up = appliance("up", plan_file, "--detach", "--state-dir", folder / "state")
    assert up.returncode == 0, up.stderr
    try:
        done = appliance("verify", "golden", plan_file, "--record", record)
        assert done.returncode == 0, done.stderr
    finally:
        appliance("down", "--state-dir", folder / "state")
    return record


@pytest.fixture
def run(make_plan, tmp_path, leaves_nothing):
    """Bring a plan up in the background; it is taken down after the test."""
    started = Run(tmp_path)

    def up(topology: str, **changes) -> Run:
        make_plan(topology, **changes).write(started.plan_file)
        done = appliance("up", started.plan_file, "--detach", "--state-dir", started.state_dir)
        assert done.returncode == 0, done.stderr
        return started

    yield up
    appliance("down", "--state-dir", started.state_dir)


class Run:
    """A plan that is up: its files, its processes, its front door."""

    def __init__(self, folder: Path):
        self.plan_file = folder / "plan.json"
        self.state_dir = folder / "state"

    def plan(self):
        from appliance.documents import Plan

        return Plan.read(self.plan_file)

    def session_of(self, name: str) -> int:
        """Pid of the leader of the process called `name`."""
        from tests.helpers.cli import state

        return next(p["session"] for p in state(self.state_dir)["processes"] if p["name"] == name)

    def golden(self, reference: Path):
        """Compare the golden answers through the front door with a record."""
        return appliance("verify", "golden", self.plan_file, "--against", reference)
