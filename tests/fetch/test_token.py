"""The token of a gated model reaches the hub and nobody else."""

import os
import subprocess
from pathlib import Path

import pytest

from appliance.fetch.layout import PARTIAL
from tests.fetch.fetched import content, line_of, whole
from tests.helpers.cli import APPLIANCE, wait_for
from tests.helpers.hub_server import COMMIT, REPO

TOKEN = "hf_notARealTokenButLongEnoughToLookLikeOne"


@pytest.fixture
def gated(hub):
    hub.token = TOKEN
    return hub


@pytest.fixture
def credentials(tmp_path):
    """A folder as systemd makes it for a unit with LoadCredential=."""
    folder = tmp_path / "credentials"
    folder.mkdir(mode=0o700)
    (folder / "hf-token").write_text(TOKEN + "\n")
    return folder


def test_without_a_token_it_is_refused(gated, fetch):
    assert "not authorised (401)" in line_of(fetch(), 2)


def test_with_the_credential_of_the_unit_it_comes(gated, fetch, home, repository, credentials):
    whole(fetch(CREDENTIALS_DIRECTORY=str(credentials)))
    assert content(home / COMMIT) == content(repository)


def test_the_second_host_never_gets_it(gated, fetch, credentials):
    whole(fetch("--token-file", credentials / "hf-token"))
    assert all("authorization" not in headers for host, _, headers in gated.requests if host == "cdn")
    assert any("authorization" in headers for host, _, headers in gated.requests if host == "hub")


def test_it_is_in_no_argument_no_environment_no_log_and_no_file(gated, settings, home, tmp_path, credentials):
    gated.rate = 1_000_000
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*APPLIANCE, "fetch", REPO, "--to", str(home), "--token-file", str(credentials / "hf-token")],
            env=os.environ | settings,
            stdout=log,
            stderr=log,
        )
    wait_for(lambda: (home / COMMIT / PARTIAL / "model-1.safetensors").exists(), 30, "a fetch at work")
    seen = b"".join(map(read, [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]))
    assert REPO.encode() in seen  # the fetch itself was looked at
    assert TOKEN.encode() not in seen
    gated.rate = None
    assert process.wait(60) == 0
    written = [path for path in (*home.rglob("*"), *(tmp_path / "hf").rglob("*"), tmp_path / "log") if path.is_file()]
    assert all(TOKEN.encode() not in path.read_bytes() for path in written)


@pytest.mark.parametrize("text", ["", "\n", "two words", "hf_ü", "line\nline"])
def test_what_is_no_token_is_refused_without_being_quoted(gated, fetch, tmp_path, text):
    (tmp_path / "token").write_text(text)
    line = line_of(fetch("--token-file", tmp_path / "token"), 2)
    assert line == f"{tmp_path / 'token'}: no token; expected one line without spaces"


def test_a_token_file_that_is_not_there_is_one_line(fetch, tmp_path):
    assert "No such file" in line_of(fetch("--token-file", tmp_path / "nothing"), 2)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
