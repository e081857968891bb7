"""Following the journal of a deploy: to its end, and not for ever where nobody goes on with it."""

from appliance.deploy.host import follow
from tests.deploy.pretended_host import PowerCut, PretendedHost
from tests.deploy.test_switch import Deploying, asked


def test_a_deploy_that_ended_is_told_once(tmp_path):
    deploying = Deploying(tmp_path, PretendedHost())
    deploying.run()
    assert [journal.step for journal in follow.journals(deploying.state, asked().id)] == ["committed"]
    assert list(follow.journals(deploying.state, asked(2).id)) == []


def test_a_deploy_that_was_cut_off_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "NOBODY_S", 0.1)

    def cut():
        raise PowerCut

    deploying = Deploying(tmp_path, PretendedHost(gate=cut))
    try:
        deploying.run()
    except PowerCut:
        pass
    assert [journal.step for journal in follow.journals(deploying.state, asked().id)] == ["gating"]
