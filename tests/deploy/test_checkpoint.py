"""The checkpoint is fetched by the host itself, over a real sshd; the fetch is a stand-in that says what it got."""

import pytest

from appliance.deploy.checkpoint import Checkpoint, bring, checkpoint
from appliance.deploy.remote import Remote
from appliance.errors import InputError, ProbeIncomplete
from tests.helpers import sshd

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = """\
#!/bin/sh
echo "$@" >> {folder}/arguments
cat >> {folder}/input
exit $(cat {folder}/code)
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    if sshd.missing():
        pytest.skip(sshd.missing())
    server = sshd.Sshd(tmp_path / "ssh")
    server.start()
    monkeypatch.setenv("PATH", f"{server.client()}:/usr/bin:/bin")
    program = tmp_path / "generation/etc/sglang-appliance/package/bin/appliance"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "code").write_text("0")
    yield Remote(server.ask), server
    server.stop()


def test_the_token_goes_through_the_connection_and_into_no_argument(host, tmp_path):
    remote, server = host
    bring(
        remote, str(tmp_path / "generation"), Checkpoint("org/model", COMMIT, "/srv/m", rate="200M", token="hf_secret")
    )
    arguments = (tmp_path / "arguments").read_text()
    assert arguments == f"fetch org/model --revision {COMMIT} --to /srv/m --rate 200M --token-file /dev/stdin\n"
    assert (tmp_path / "input").read_text() == "hf_secret\n"
    said = "\n".join(server.calls()) + (server.folder / "log").read_text()
    assert "org/model" in said and "hf_secret" not in said


def test_a_fetch_that_fails_ends_the_deploy_as_it_ended(host, tmp_path):
    (tmp_path / "code").write_text("3")
    with pytest.raises(ProbeIncomplete, match="org/model was not fetched; nothing was stopped"):
        bring(host[0], str(tmp_path / "generation"), Checkpoint("org/model", COMMIT, "/srv/m"))


def test_a_folder_without_the_commit_in_its_name_is_refused(make_plan):
    plan = make_plan("single")
    with pytest.raises(InputError, match=f"expected a folder named {COMMIT}"):
        checkpoint(f"org/model@{COMMIT}", plan, None, None, None)
    with pytest.raises(InputError, match="expected ORG/NAME@COMMIT"):
        checkpoint("org/model@main", plan, None, None, None)
