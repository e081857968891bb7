"""Without a hub: from a folder, and from a host by real rsync over a real sshd on loopback."""

import os
import shutil

import pytest

from appliance.fetch.layout import MANIFEST, PARTIAL
from tests.fetch.fetched import content, is_whole, line_of, whole
from tests.helpers import sshd
from tests.helpers.hub_server import COMMIT

LARGE = "model-1.safetensors"
pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def source(fetch, tmp_path):
    """A revision that was fetched before, elsewhere."""
    whole(fetch(to=tmp_path / "elsewhere"))
    return tmp_path / "elsewhere" / COMMIT


@pytest.fixture
def offline(fetch, hub, source):
    """Run a fetch with no hub in reach."""
    return lambda *words, **env: fetch(*words, HF_ENDPOINT="http://127.0.0.1:9", **env)


@pytest.fixture
def ssh(tmp_path):
    """PATH with an ssh that knows the host `machine`."""
    reason = sshd.missing()
    if reason:
        pytest.skip(reason)
    server = sshd.Sshd(tmp_path / "sshd")
    server.start()
    yield lambda **how: {"PATH": f"{server.client(**how)}:{os.environ['PATH']}"}
    server.stop()


def test_from_a_folder(offline, source, home, repository):
    whole(offline("--from", source))
    assert content(home / COMMIT) == content(repository) and is_whole(home / COMMIT)


def test_from_a_host(offline, source, home, repository, ssh):
    whole(offline("--from", f"machine:{source}", **ssh()))
    assert content(home / COMMIT) == content(repository) and is_whole(home / COMMIT)
    whole(offline("--from", f"machine:{source}", "--revision", COMMIT, "--deep"))


def test_what_is_there_is_not_copied_and_half_a_file_is_gone_on_with(offline, source, home, repository):
    whole(offline("--from", source))
    (home / COMMIT / MANIFEST).unlink()
    (home / COMMIT / LARGE).unlink()
    (home / COMMIT / PARTIAL).mkdir()
    (home / COMMIT / PARTIAL / LARGE).write_bytes((repository / LARGE).read_bytes()[:1_000_000] + b"wrong")
    kept = (home / COMMIT / "model-2.safetensors").stat().st_ino
    whole(offline("--from", source))
    assert content(home / COMMIT) == content(repository)
    assert (home / COMMIT / "model-2.safetensors").stat().st_ino == kept


def test_a_source_that_went_bad_is_found_by_its_manifest(offline, source, home):
    (source / LARGE).write_bytes(b"x" * 3_000_000)
    line = line_of(offline("--from", source), 1)
    assert LARGE in line and "sha256" in line
    assert not is_whole(home / COMMIT) and not (home / COMMIT / LARGE).exists()


def test_a_source_that_lacks_a_file_is_one_line(offline, source, home):
    (source / LARGE).unlink()
    assert "cannot be copied whole" in line_of(offline("--from", source), 2)


@pytest.mark.parametrize("place", ["folder", "host"])
def test_a_source_without_a_manifest_is_refused(offline, source, tmp_path, ssh, place):
    bare = tmp_path / "bare"
    bare.mkdir()
    where = str(bare) if place == "folder" else f"machine:{bare}"
    assert f"no {MANIFEST} there" in line_of(offline("--from", where, **ssh()), 2)


def test_another_model_or_revision_is_refused(offline, source):
    assert "expected other/model" in line_of(offline("--from", source, model="other/model"), 2)
    assert f"expected {'f' * 40}" in line_of(offline("--from", source, "--revision", "f" * 40), 2)


def test_a_host_whose_key_is_another_is_one_line(offline, source, ssh):
    line = line_of(offline("--from", f"machine:{source}", **ssh(known="wrong")), 3)
    assert "cannot be reached" in line


def test_without_rsync_it_says_so(offline, source):
    env = {"PATH": "/nowhere"}
    assert "rsync cannot be run" in line_of(offline("--from", source, **env), 2)
