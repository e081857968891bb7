"""`appliance deploy` from one machine to another: real ssh, real systemd, real Nix stores, real units of the module.

The engine is a stand-in that speaks the same HTTP (tests/helpers/standin_engine.py), so that everything that can go
wrong is gone through in little time; the last test deploys the real one. `other.service` is what holds the GPUs before.
"""

import json
import os
import threading
from datetime import datetime

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
PROGRAM = (
    "PYTHONPATH=/srv/project PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH=/srv/python/lib /srv/environment/bin/python"
)


alone = pytest.mark.skipif(
    "APPLIANCE_DEPLOY_ALONE" not in os.environ,
    reason="needs hosts whose stores no test above has filled: APPLIANCE_DEPLOY_ALONE=1 and -k",
)


class Desk:
    """The machine that deploys."""

    def __init__(self, host: Host):
        self.host = host

    def deploy(self, box: Host | list[Host], *options: str, generation: str | None = None, timeout_s: float = 240):
        """Call `appliance deploy`."""
        boxes = box if isinstance(box, list) else [box]
        words = [*(f"root@{box.name}" for box in boxes), *options]
        if generation:
            words += ["--generation", generation, "--yes", "--most-restarts", "0"]
            # speed: other tests take the processors' time
            for option, value in (("--gate-seconds", "40"), ("--confirm-seconds", "6"), ("--least-speed", "0")):
                words += [option, value] if option not in options else []
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
    fresh_box.ssh("rm -f /usr/local/bin/systemd-sysusers; rm -rf /etc/systemd/system/other.service.d")


def answers(box: Host, port: int) -> bool:
    return box.try_ssh(f"curl -sf --retry 5 --retry-connrefused -o /dev/null http://127.0.0.1:{port}/").returncode == 0


def journal(box: Host) -> dict:
    return json.loads(box.ssh("cat /var/lib/appliance-deploy/journal.json"))


def reached(box: Host, *steps: str, seconds: int = 150) -> None:
    """Wait until the journal on the host names one of the steps."""
    wanted = "|".join(steps)
    done = box.try_ssh(
        f"for i in $(seq {seconds * 20}); do"
        f' grep -qsE \'^  "step": "({wanted})"\' /var/lib/appliance-deploy/journal.json && exit; sleep 0.05; done; exit 1'
    )
    assert done.returncode == 0, box.try_ssh("cat /var/lib/appliance-deploy/journal.json").stdout


def runs(box: Host) -> list[str]:
    """What the host runs and what it boots into: the target's unit file, and the profile."""
    loaded = box.ssh("readlink -f $(systemctl show sglang-appliance.target -P FragmentPath)").split("/etc/")[0]
    return [loaded, box.ssh("readlink -f /nix/var/nix/profiles/sglang-appliance").strip()]


@pytest.fixture(scope="module")
def router_port(given) -> int:
    return json.loads(given["files"]["plan.json"])["router"]["port"]


@pytest.fixture(scope="module")
def served(network, desk, good) -> Host:
    """A host that serves the good generation; the tests on it leave it like that."""
    box = network.host()
    done = desk.deploy(box, generation=good)
    assert done.returncode == 0, done.stderr
    return box


def test_a_good_deploy_serves_is_kept_and_is_what_the_host_boots_into(desk, box, good, router_port):
    done = desk.deploy(box, "--stop", STOP, generation=good)
    assert done.returncode == 0, done.stderr
    assert "to copy" in done.stdout and "stops       other.service" in done.stdout
    assert answers(box, router_port) and not answers(box, 8099)
    box.cut_power()
    box.boot()
    assert answers(box, router_port) and not answers(box, 8099)
    again = desk.deploy(box, "--stop", STOP, generation=good)
    assert again.returncode == 0 and "nothing to change" in again.stderr


def test_removal_leaves_nothing_and_what_gave_way_serves_again(desk, box, good):
    everything = (
        "systemctl list-unit-files 'sglang*' --no-legend; getent passwd sglang; ls -d /nix/var/nix/profiles/sglang*"
        " /nix/var/nix/gcroots/appliance* /etc/systemd/system/*/sglang* /etc/systemd/system/sglang* /run/appliance*"
        " /run/systemd/system.control/* /var/lib/*appliance* /var/cache/*appliance* 2> /dev/null; true"
    )
    before = box.ssh(everything)
    assert desk.deploy(box, "--stop", STOP, generation=good).returncode == 0
    assert box.ssh(everything) != before
    done = desk.deploy(box, "--remove")
    assert done.returncode == 0, done.stderr
    assert box.ssh(everything) == before
    assert answers(box, 8099) and box.ssh("systemctl is-enabled other.service").strip() == "enabled"


FAULTS = {
    "wrong answer": ("golden prompts", "tokens differ from position 0"),
    "never ready": ("units are active", "sglang-prefill.service"),
    "identity": ("identity of decode", "--served-model-name is something-else, planned demo"),
    "dies under load": ("no error under load", "status 503"),
    "no transfer": ("KV cache crossed", "0 transfers"),
    "decode prefills": ("decode did not prefill", "70 by decode"),
    "slow": ("speed", "of the last good"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_that_is_ill_is_taken_back_with_the_evidence(desk, served, good, given, router_port, fault):
    ill = generation(desk.host, given, fault)
    done = desk.deploy(served, *(["--least-speed", "0.5"] if fault == "slow" else []), generation=ill)
    check, evidence = FAULTS[fault]
    # the unit that asks for identity and a completion finds out what it is there for before the gate does
    found = journal(served)["failure"]
    if fault == "identity" and found["check"] == "units are active":
        check, evidence = "units are active", "sglang-ready.service"
        assert FAULTS[fault][1] in " ".join(" ".join(found["logs"]["sglang-ready.service"]).split())
    assert done.returncode == 1, done.stderr
    assert found["check"] == check and evidence in found["evidence"], found
    assert f"rolled back. {check} did not hold" in done.stderr
    assert "again: the former appliance answers" in done.stderr
    assert runs(served) == [good, good] and answers(served, router_port)
    if fault == "never ready":
        assert any("out of memory" in line for line in found["logs"]["sglang-prefill.service"])


def test_a_service_that_hangs_is_taken_back_when_the_time_is_over(desk, box, given):
    hanging = generation(desk.host, given, "hangs")
    done = desk.deploy(box, "--stop", STOP, generation=hanging)
    assert done.returncode == 1
    found = journal(box)["failure"]
    assert found["check"] == "units are active" and "not within 40 s" in found["evidence"]
    assert answers(box, 8099) and box.ssh("systemctl list-units 'sglang*' --no-legend --state=active") == ""


def test_back_to_what_was_deployed_before_and_the_history_of_it(desk, served, good, given):
    other = generation(desk.host, given, "another good one")
    assert desk.deploy(served, generation=other).returncode == 0
    assert runs(served) == [other, other]
    done = desk.deploy(served, "--rollback", "--least-speed", "0")
    assert done.returncode == 0, done.stderr
    assert runs(served) == [good, good]
    records = json.loads(desk.deploy(served, "--history", "--json").stdout)["records"]
    assert [(r["reason"], r["outcome"], r["generation"]) for r in records[-2:]] == [
        ("deploy", "committed", other),
        ("rollback", "committed", good),
    ]
    assert records[-1]["golden"]["answers"] == records[-2]["golden"]["answers"]


class Going:
    """A deploy that goes on in the background."""

    def __init__(self, desk: Desk, box: Host, *options: str, generation: str):
        self.done = None
        self.thread = threading.Thread(target=self._run, args=(desk, box, options, generation), daemon=True)
        self.thread.start()

    def _run(self, desk, box, options, generation) -> None:
        self.done = desk.deploy(box, *options, generation=generation)

    def end(self):
        self.thread.join(240)
        assert self.done is not None
        return self.done


def slowed(box: Host) -> None:
    """Steps that are over at once take two seconds, so that something can happen meanwhile."""
    drop_in = "[Service]\nExecStop=/bin/sleep 2\n"
    box.ssh(
        "mkdir -p /etc/systemd/system/other.service.d; cat > /etc/systemd/system/other.service.d/slow.conf", drop_in
    )
    slow = '#!/bin/sh\nsleep 2\nexec /usr/bin/systemd-sysusers "$@"\n'
    box.ssh(
        "cat > /usr/local/bin/systemd-sysusers; chmod +x /usr/local/bin/systemd-sysusers; systemctl daemon-reload", slow
    )


@pytest.mark.parametrize("step", ["begun|stopping", "activating", "gating", "waiting|committing", "rolling back"])
def test_power_lost_the_host_boots_what_it_had_and_the_next_deploy_cleans_up(desk, box, good, given, step, router_port):
    slowed(box)
    going = Going(
        desk,
        box,
        "--stop",
        STOP,
        generation=generation(desk.host, given, "never ready" if step == "rolling back" else "none"),
    )
    reached(box, *step.split("|"))
    box.cut_power()
    box.boot()
    kept = box.try_ssh("test -e /nix/var/nix/profiles/sglang-appliance").returncode == 0
    assert not kept or step == "waiting|committing"
    if not kept:
        assert answers(box, 8099)
    going.end()
    done = desk.deploy(box, "--stop", STOP, generation=good)
    assert done.returncode == 0, done.stderr
    assert runs(box) == [good, good] and answers(box, router_port) and not answers(box, 8099)
    if not kept:
        records = json.loads(desk.deploy(box, "--history", "--json").stdout)["records"]
        assert [record["outcome"] for record in records] == ["rolled back", "committed"]


def test_a_switch_that_is_killed_goes_back_by_itself(desk, box, good):
    going = Going(desk, box, "--stop", STOP, generation=good)
    reached(box, "gating")
    box.ssh("systemctl kill --signal=SIGKILL appliance-deploy.service")
    done = going.end()
    assert done.returncode == 1 and "cut off here" in done.stderr, done.stderr
    assert answers(box, 8099) and not box.ssh("systemctl list-units 'sglang*' --no-legend --state=active")


@pytest.mark.parametrize("step", ["begun|stopping", "activating", "gating"])
def test_connection_lost_for_good_the_host_goes_back_by_itself(network, desk, box, good, step):
    slowed(box)
    going = Going(desk, box, "--stop", STOP, generation=good)
    reached(box, *step.split("|"))
    network.run(f"ip link set vb-{desk.host.name} down")
    try:
        reached(box, "rolled back")
    finally:
        network.run(f"ip link set vb-{desk.host.name} up")
    assert "did not confirm within 6 s" in journal(box)["failure"]["evidence"]
    assert answers(box, 8099)
    assert going.end().returncode != 0


def test_connection_lost_for_a_moment_changes_nothing(network, desk, box, good):
    going = Going(desk, box, "--stop", STOP, "--confirm-seconds", "60", generation=good)
    reached(box, "gating")
    desk.host.ssh("pkill -o -f 'ssh .* deploy-host follow'")
    done = going.end()
    assert done.returncode == 0 and "connection lost, trying again" in done.stderr, done.stderr
    assert runs(box) == [good, good]


def test_a_second_deploy_is_refused_with_who_holds_the_host(desk, box, good, given):
    going = Going(desk, box, "--stop", STOP, generation=generation(desk.host, given, "hangs"))
    reached(box, "gating")
    second = desk.deploy(box, generation=good)
    assert second.returncode == 1
    assert "another deploy is going on: root@" in second.stderr and ", since 20" in second.stderr
    assert "held by root@" in desk.deploy(box, "--status").stdout or journal(box)["step"] == "gating"
    box.ssh("systemctl stop appliance-deploy.service")
    assert going.end().returncode == 1 and answers(box, 8099)


@alone
def test_only_looking_changes_nothing(desk, box, good):
    done = desk.deploy(box, "--generation", good, "--stop", STOP, "--dry-run")
    assert done.returncode == 0 and "will run" in done.stdout
    assert box.try_ssh(f"test -e {good}").returncode != 0 and answers(box, 8099)


@alone
def test_the_closure_arrives_with_its_signatures(desk, box, good):
    desk.host.ssh(
        "nix key generate-secret --key-name desk-1 > /root/signing; nix store sign -r -k /root/signing " + good
    )
    assert desk.deploy(box, "--stop", STOP, generation=good).returncode == 0
    assert '"desk-1:' in box.ssh(f"nix path-info --json {good}")


@alone
def test_the_real_pair_is_deployed_and_serves_again_after_an_ill_one(desk, box, given, router_port):
    real = generation(desk.host, given, fault=None)
    done = desk.deploy(box, "--stop", STOP, "--gate-seconds", "400", generation=real, timeout_s=500)
    assert done.returncode == 0, done.stderr
    first = json.loads(desk.deploy(box, "--history", "--json").stdout)["records"][0]
    assert all(check["passed"] for check in first["checks"])
    assert {"KV cache crossed", "decode did not prefill", "golden prompts"} <= {c["name"] for c in first["checks"]}
    # the stand-in answers otherwise than the model did
    ill = desk.deploy(box, generation=generation(desk.host, given, "another model"), timeout_s=500)
    assert ill.returncode == 1 and "rolled back. golden prompts did not hold" in ill.stderr, ill.stderr
    assert runs(box) == [real, real]
    times = {event["step"]: datetime.fromisoformat(event["time"]) for event in reversed(journal(box)["events"])}
    assert (times["rolled back"] - times["rolling back"]).total_seconds() < 10 + first["down_s"]
    body = json.dumps({"model": "demo", "prompt": "x", "max_tokens": 3, "ignore_eos": True})
    assert '"completion_tokens":3' in box.ssh(
        f"curl -s http://127.0.0.1:{router_port}/v1/completions -H 'Content-Type: application/json' -d '{body}'"
    )
