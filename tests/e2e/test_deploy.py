"""`appliance deploy` from one machine to another: real ssh, real systemd, real Nix stores, real units of the module.

The engine is a stand-in that speaks the same HTTP (tests/helpers/standin_engine.py), so that everything that can go
wrong is gone through; test_deploy_engine.py deploys the real one. `other.service` is what holds the GPUs before.
"""

import json
import time

import pytest

from tests.helpers.generations import MODEL, evaluated, generation
from tests.helpers.hosts import Host, Network
from tests.helpers.machine_python import python_places

OTHER = """\
[Unit]
Description=a service of another model
[Service]
ExecStart=/usr/bin/python3 -m http.server 8099 --bind 127.0.0.1 --directory /var/empty
ExecStartPre=/bin/mkdir -p /var/empty
[Install]
WantedBy=multi-user.target
"""
STOP = "other.service=http://127.0.0.1:8099/"
PROGRAM = "PYTHONPATH=/srv/project PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH=/srv/python/lib /srv/environment/bin/python"


class Desk:
    """The machine that deploys."""

    def __init__(self, host: Host):
        self.host = host

    def deploy(self, box: Host | list[Host], *options: str, generation: str | None = None, timeout_s: float = 120):
        """Call `appliance deploy`."""
        boxes = box if isinstance(box, list) else [box]
        words = [*(f"root@{box.name}" for box in boxes), *options]
        if generation:
            words += ["--generation", generation, "--yes", "--gate-seconds", "40", "--most-restarts", "0"]
            words += ["--confirm-seconds", "4"]
        line = " ".join(f"'{word}'" for word in words)
        return self.host.try_ssh(f"{PROGRAM} -m appliance deploy {line}", timeout_s=timeout_s)


@pytest.fixture(scope="module")
def network(demo_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    network = Network(folder, python_places(folder) | {MODEL: demo_model})
    yield network
    network.close()


@pytest.fixture(scope="module")
def desk(network) -> Desk:
    return Desk(network.host())


@pytest.fixture(scope="module")
def given(make_plan) -> dict:
    """The units and files of a pair."""
    return evaluated(make_plan("pd", stop_timeout_s=5.0), restartDelay=1)


@pytest.fixture(scope="module")
def good(desk, given) -> str:
    return generation(desk.host, given)


@pytest.fixture(scope="module")
def fresh_box(network) -> Host:
    box = network.host()
    box.ssh("cat > /etc/systemd/system/other.service; systemctl enable --now other.service", text=OTHER)
    return box


@pytest.fixture
def box(desk, fresh_box) -> Host:
    """The host as it was before anything was deployed: the other service holds the GPUs."""
    yield fresh_box
    fresh_box.ssh("systemctl stop appliance-deploy.service 2> /dev/null || true")
    desk.deploy(fresh_box, "--remove")
    fresh_box.ssh("rm -rf /var/lib/appliance-deploy; systemctl enable --now other.service")


def answers(box: Host, port: int) -> bool:
    return box.try_ssh(f"curl -sf --retry 5 --retry-connrefused -o /dev/null http://127.0.0.1:{port}/").returncode == 0


def status(desk: Desk, box: Host) -> dict:
    return json.loads(desk.deploy(box, "--status", "--json").stdout)


def test_a_good_deploy_serves_is_kept_and_is_what_the_host_boots_into(desk, box, good, given):
    done = desk.deploy(box, "--stop", STOP, generation=good)
    assert done.returncode == 0, done.stderr
    port = json.loads(given["files"]["plan.json"])["router"]["port"]
    assert answers(box, port) and not answers(box, 8099)
    box.cut_power()
    box.boot()
    assert answers(box, port) and not answers(box, 8099)
    began = time.monotonic()
    again = desk.deploy(box, "--stop", STOP, generation=good)
    assert again.returncode == 0 and "nothing to change" in again.stderr
    assert time.monotonic() - began < 5
