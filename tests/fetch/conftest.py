"""A local hub with a checkpoint of random bytes, and `appliance fetch` as a user runs it, without their settings."""

import os
import random

import pytest

from tests.helpers.cli import appliance
from tests.helpers.hub_server import REPO, Hub, serve

WEIGHTS = {"model-1.safetensors": 3_000_000, "model-2.safetensors": 1_000_001, "sub/model-3.safetensors": 70_000}
SMALL = {"config.json": b'{"a": 1}\n', "empty.txt": b""}


@pytest.fixture
def repository(tmp_path):
    """The files as the hub has them."""
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    for name, size in WEIGHTS.items():
        (folder / name).write_bytes(random.Random(name).randbytes(size))
    for name, content in SMALL.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def hub(repository):
    hub = Hub(repository)
    servers = serve(hub)
    yield hub
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def settings(hub, tmp_path):
    """The environment of a fetch."""
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}


@pytest.fixture
def fetch(home, settings):
    """Run `appliance fetch MODEL --to HOME WORDS`."""

    def run(*words, model=REPO, to=None, **env):
        return appliance("fetch", model, "--to", to or home, *words, env=settings | env, timeout=60)

    return run


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")
