"""The switch's way forward and back, with failures and power cuts at every step."""

import threading

import pytest

from appliance.deploy.host import switch as switch_module
from appliance.deploy.host.state import HostState
from appliance.deploy.host.switch import Interrupted, NotHeld, Switch
from appliance.documents import Check
from appliance.documents.deploy import DeployRequest, GateResult, StoppedService
from appliance.errors import CheckFailed
from tests.deploy.pretended_host import NEW, OLD, PowerCut, PretendedHost, fails

AFTER_KEEPING = ("keep: in the middle", "enable", "stop: begun", "stop: done", "journal: committed")
OTHER = StoppedService(unit="other.service")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(switch_module, "LOOK_EVERY_S", 0.005)


def asked(number: int = 1, **changes) -> DeployRequest:
    values = {
        "id": f"20261201T000000Z-{number:08x}",
        "generation": NEW,
        "requested_by": "ada@desk",
        "plan_identity": "0" * 64,
        "stop": [OTHER],
        "confirm_s": 0.05,
    }
    return DeployRequest(**values | changes)


class Deploying:
    """A switch on a pretended host, whose deployer confirms as soon as it may, or not at all."""

    def __init__(self, folder, host: PretendedHost, confirms: bool = True):
        self.state, self.host, self.confirms = HostState(folder), host, confirms
        self.said: list[str] = []

    def switch(self) -> Switch:
        return Switch(self.state, self.host, self.host, self.host, say=self.hear)

    def hear(self, text: str) -> None:
        self.said.append(text)
        if text.startswith("waiting: ") and self.confirms:
            self.state.confirm(self.state.journal().request.id)

    def run(self, request: DeployRequest | None = None):
        return self.switch().run(request or asked())


def is_as_before(host: PretendedHost) -> bool:
    return (host.running(), host.boot, host.appliance, host.other_active, host.other_enabled) == (
        OLD,
        OLD,
        OLD,
        True,
        True,
    )


def is_switched(host: PretendedHost) -> bool:
    return (host.running(), host.boot, host.appliance, host.other_active, host.other_enabled) == (
        NEW,
        NEW,
        NEW,
        False,
        False,
    )


def test_a_good_deploy_is_kept_and_recorded(tmp_path):
    deploying = Deploying(tmp_path, PretendedHost())
    journal = deploying.run()
    assert is_switched(deploying.host)
    assert [event.step for event in journal.events] == [
        "begun", "stopping", "activating", "gating", "waiting", "committing", "committed",
    ]  # fmt: skip
    record = deploying.state.history().records[-1]
    assert (record.outcome, record.generation, record.former) == ("committed", NEW, OLD)
    assert deploying.state.holder() is None


def test_a_check_that_does_not_hold_brings_everything_back_with_its_evidence(tmp_path):
    wrong = Check(name="golden prompts", passed=False, evidence="short: text differs from character 3 of 20")

    def gate():
        raise NotHeld(wrong, ["sglang-decode.service"], [wrong], GateResult(output_tokens_per_s=7.0))

    deploying = Deploying(tmp_path, PretendedHost(gate=gate))
    journal = deploying.run()
    assert journal.step == "rolled back" and is_as_before(deploying.host)
    assert journal.failure.check == "golden prompts" and journal.failure.evidence == wrong.evidence
    assert journal.failure.logs == {"sglang-decode.service": ["what sglang-decode.service said"]}
    assert all(check.passed for check in journal.restored) and len(journal.restored) == 2
    assert deploying.state.history().records[-1].outcome == "rolled back"


def test_a_deployer_that_does_not_confirm_is_taken_for_lost(tmp_path):
    deploying = Deploying(tmp_path, PretendedHost(), confirms=False)
    journal = deploying.run()
    assert journal.step == "rolled back" and is_as_before(deploying.host)
    assert "did not confirm" in journal.failure.evidence


def test_a_failed_rollback_is_said(tmp_path):
    host = PretendedHost(gate=fails)
    host.serves = lambda generation: [Check(name="the former appliance answers", passed=False, evidence="no answer")]
    journal = Deploying(tmp_path, host).run()
    assert journal.step == "rollback failed"
    assert journal.events[-1].text == "the former appliance answers: no answer"


def test_the_unit_that_is_stopped_goes_back_first(tmp_path):
    def gate():
        raise Interrupted("the unit of the switch was stopped")

    deploying = Deploying(tmp_path, PretendedHost(gate=gate))
    assert deploying.run().step == "rolled back" and is_as_before(deploying.host)


def test_a_host_without_a_former_generation_has_none_again(tmp_path):
    deploying = Deploying(tmp_path, PretendedHost(boot=None, gate=fails))
    assert deploying.run().step == "rolled back"
    assert (deploying.host.running(), deploying.host.appliance, deploying.host.other_active) == (None, None, True)


def operations(tmp_path, **host) -> list[str]:
    """Everything that a deploy does to the host and to its own disk, in order."""
    seen: list[str] = []
    deploying = Deploying(tmp_path / "counting", PretendedHost(before=seen.append, **host))
    observe(deploying, seen.append)
    deploying.run()
    return seen


def observe(deploying: Deploying, before) -> None:
    """Have `before` asked before the state on the disk is changed too."""
    write = deploying.state.write_journal

    def observed(journal):
        before(f"journal: {journal.step}")
        write(journal)

    deploying.state.write_journal = observed


@pytest.mark.parametrize("gate", [None, fails], ids=["good", "ill"])
@pytest.mark.parametrize("reboots", [True, False], ids=["power", "kill"])
def test_cut_off_anywhere_the_host_boots_the_former_and_the_next_deploy_cleans_up(tmp_path, gate, reboots):
    everything = operations(tmp_path, gate=gate)
    assert len(everything) > 15
    for place in range(len(everything)):
        left = [place]

        def before(operation, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise PowerCut

        deploying = Deploying(tmp_path / str(place), PretendedHost(before=before, gate=gate))
        observe(deploying, before)
        with pytest.raises(PowerCut):
            deploying.run()
        host, cut = deploying.host, everything[place]
        host.before = lambda operation: None
        deploying.state = HostState(tmp_path / str(place))
        kept = host.boot == NEW
        assert not kept or cut in AFTER_KEEPING, cut
        if reboots:
            host.boots()
            assert host.appliance == (NEW if kept else OLD), cut
        deploying.switch().recover()
        if place == 0:
            assert deploying.state.journal() is None
        else:
            assert deploying.state.journal().step == ("committed" if kept else "rolled back"), cut
        assert is_switched(host) if kept else is_as_before(host), cut
        host.gate = PretendedHost().gate
        assert deploying.run(asked(2)).step == "committed", cut
        assert host.appliance == NEW, cut


def test_what_fails_at_any_step_is_undone(tmp_path):
    for operation in dict.fromkeys(operations(tmp_path)):
        if operation.startswith("journal") or operation == "start":
            continue
        failed = []

        def before(now, operation=operation, failed=failed):
            if now == operation and not failed:
                failed.append(now)
                raise CheckFailed(f"{now} fails")

        deploying = Deploying(tmp_path / operation.replace(" ", "-"), PretendedHost(before=before))
        journal = deploying.run()
        assert journal.step == "rolled back" and is_as_before(deploying.host), operation
        assert journal.failure.evidence == f"{operation} fails"


def test_a_second_deploy_is_refused_with_who_holds_the_host(tmp_path):
    inside, finish = threading.Event(), threading.Event()

    def gate():
        inside.set()
        finish.wait(10)
        return PretendedHost().gate()

    deploying = Deploying(tmp_path, PretendedHost(gate=gate))
    first = threading.Thread(target=deploying.run)
    first.start()
    try:
        assert inside.wait(10)
        with pytest.raises(
            CheckFailed, match=r"another deploy is going on: ada@desk \(20261201T000000Z-00000001\), since"
        ):
            Deploying(tmp_path, PretendedHost()).run(asked(2, requested_by="bob@desk"))
        assert deploying.state.holder().startswith("ada@desk")
    finally:
        finish.set()
        first.join()
    assert is_switched(deploying.host)


def test_a_confirmation_that_nobody_waits_for_is_refused(tmp_path):
    deploying = Deploying(tmp_path, PretendedHost())
    with pytest.raises(CheckFailed, match="there is no deploy; expected it to be waiting"):
        deploying.state.confirm("20261201T000000Z-00000001")
    deploying.run()
    with pytest.raises(CheckFailed, match="is committed; expected it to be waiting"):
        deploying.state.confirm("20261201T000000Z-00000001")
