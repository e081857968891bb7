"""Bad input gets one line that says what, where and what was expected; exit code 2; nothing left behind."""

import json
import socket

import pytest

from tests.helpers.cli import appliance, refused
from tests.helpers.ports import free_range

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.fixture
def plan_file(make_plan, tmp_path):
    """Write a plan, changed as told, and return its file."""

    def write(topology="single", **changes):
        path = tmp_path / "plan.json"
        data = json.loads(make_plan(topology).to_json()) | changes
        path.write_text(json.dumps(data))
        return path

    return write


@pytest.fixture
def state_dir(tmp_path):
    """A state directory that must not exist after the test."""
    path = tmp_path / "state"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_a_port_in_use_is_reported_with_the_process(plan_file, state_dir, options):
    path = plan_file()
    port = json.loads(path.read_text())["workers"][0]["port"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        line = refused("up", path, "--state-dir", state_dir, *options)
    assert line.startswith(f"port {port} (single.port) is in use by ")
    assert line.endswith("; expected it free")


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_another_version_of_the_engine(plan_file, state_dir, options):
    path = plan_file(engine={"version": "0.5.17", "device": "cpu"})
    line = refused("up", path, "--state-dir", state_dir, *options)
    assert line == "SGLang 0.5.23 is installed; the plan expects 0.5.17"


def test_a_plan_whose_model_folder_is_gone(plan_file, state_dir, tmp_path):
    path = plan_file(model={"path": str(tmp_path / "gone"), "served_name": "demo"})
    assert refused("up", path, "--state-dir", state_dir).startswith(f"{tmp_path / 'gone'}: no such folder")


def test_an_unknown_field(plan_file, state_dir):
    path = plan_file(tpsize=4)
    assert refused("up", path, "--state-dir", state_dir).startswith(f"{path}: tpsize: unknown field; expected one of ")


def test_a_worker_that_does_not_exist(plan_file):
    assert (
        refused("launch", "decode", "--plan", plan_file()) == "the plan has no worker 'decode'; expected one of single"
    )


def test_a_file_that_is_no_plan(tmp_path, state_dir):
    assert "no such file; expected a Plan document" in refused("up", tmp_path / "absent.json", "--state-dir", state_dir)
    (tmp_path / "noise.json").write_bytes(bytes(range(256)))
    assert "expected a Plan document" in refused("up", tmp_path / "noise.json", "--state-dir", state_dir)


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_a_state_directory_that_cannot_be_written(plan_file, options):
    line = refused("up", plan_file(), "--state-dir", "/proc/no", *options)
    assert line.startswith("state directory /proc/no: cannot be written")


def test_the_demo_refuses_before_it_starts_anything(tmp_path, state_dir):
    ports = [
        "--base-port",
        free_range().base,
    ]  # looked at first; another demo may hold the usual ones
    line = refused("demo", "--cache-dir", "/proc/no", "--state-dir", state_dir, *ports)
    assert line.startswith("cache directory /proc/no: cannot be written")
    assert refused("demo", "--cache-dir", tmp_path / "c", "--state-dir", "/proc/no", *ports).startswith(
        "state directory /proc/no: cannot be written"
    )


@pytest.mark.parametrize("verb", ["plan", "recon"])
def test_a_model_folder_that_is_none(verb, tmp_path):
    assert refused(verb, "--model", tmp_path / "gone").startswith(f"{tmp_path / 'gone'}: no such f")
    (tmp_path / "empty").mkdir()
    assert "the folder is empty" in refused(verb, "--model", tmp_path / "empty")


@pytest.mark.parametrize(
    "words",
    [
        ["up"],
        ["demo", "--topology", "ring"],
        ["recon", "model"],
        ["schema", "Plans"],
        ["up", "x", "--json"],
        ["nonsense"],
        ["launch", "x"],
    ],
)
def test_bad_usage(words):
    done = appliance(*words)
    assert done.returncode == 2
    assert "Error: " in done.stderr


def test_nothing_to_stop_and_nothing_to_show(tmp_path):
    done = appliance("down", "--state-dir", tmp_path / "state")
    assert (done.returncode, done.stdout) == (0, f"nothing is running in {tmp_path / 'state'}\n")
    assert appliance("down", "--json", "--state-dir", tmp_path / "state").stdout == "null\n"
    done = appliance("status", "--state-dir", tmp_path / "state")
    assert (done.returncode, done.stdout) == (1, f"nothing has run in {tmp_path / 'state'}\n")
