"""One ssh round trip against a real sshd on loopback, and everything that goes wrong with it."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import psutil
import pytest

from appliance.errors import InputError, ProbeIncomplete
from appliance.recon.machine import machine_report
from appliance.recon.machine.remote import script
from appliance.recon.machine.remote.ssh import report_from_host
from tests.helpers.cli import APPLIANCE, appliance
from tests.helpers.sshd import Sshd, missing
from tests.recon.machine.text.test_smi import QUERY

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

COREUTILS = ["cat", "head", "tail", "tr", "od", "stat", "df", "timeout", "uname"]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Start an sshd, with a forced command or none, and put a client that knows it in front of PATH."""
    servers = []

    def start(forced: str | None = None, running: bool = True, **client) -> Sshd:
        made = Sshd(tmp_path / f"sshd{len(servers)}", forced)
        servers.append(made)
        if running:
            made.start()
        monkeypatch.setenv("PATH", f"{made.client(**client)}:{os.environ['PATH']}")
        return made

    yield start
    for made in servers:
        made.stop()


@pytest.fixture(autouse=True)
def leaves_no_ssh(tmp_path):
    yield
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and clients(tmp_path):
        time.sleep(0.05)
    assert clients(tmp_path) == []


def clients(folder) -> list[list[str]]:
    """The ssh clients of this test that run now: those that read a configuration below its folder."""
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if "BatchMode=yes" in line and any(str(folder) in word for word in line)]


def failure(server: Sshd, **options) -> str:
    with pytest.raises(ProbeIncomplete) as error:
        report_from_host(server.ask, [], **options)
    assert error.value.exit_code == 3
    assert "\n" not in str(error.value)
    return str(error.value)


def stable(report) -> dict:
    """The facts that are the same from one moment to the next, and by whatever way they were asked."""
    fields = {"hostname", "kernel", "cpu_model", "memory_mib", "processor", "kernel_settings", "pci_devices", "iommu"}
    fields |= {"nics", "software", "gpus", "links", "models", "memory_nodes_allowed", "numa_distances"}
    return report.model_dump(include=fields)


def test_far_away_and_here_the_same_machine_has_the_same_report(server, tmp_path):
    model = tmp_path / "models with a blank/a"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"architectures": ["A"]}')
    (model / "model-00001-of-00002.safetensors").write_bytes(bytes(500))
    (model / "model-00002-of-00002.safetensors").symlink_to("/gone")
    made = server()
    roots = [str(model.parent)]
    there, here = report_from_host(made.ask, roots), machine_report(model_roots=roots)
    assert stable(there) == stable(here)
    assert [(s.path, s.type, s.size_bytes) for s in there.file_systems] == [
        (s.path, s.type, s.size_bytes) for s in here.file_systems
    ]
    assert there.models[-1].problems == ["1 links to nowhere, first model-00002-of-00002.safetensors"]
    assert there.sources["gpus.memory_mib"] == "absent: nvidia-smi is not installed" or there.gpus
    assert len(made.calls()) == 1


def test_the_users_configuration_is_not_overridden(server):
    made = server()
    report_from_host(made.ask, [])
    options = re.findall(r"-o (\S+)", made.calls()[0])
    assert options == ["BatchMode=yes", "ConnectTimeout=15"]


def test_only_a_posix_shell_and_coreutils(server, tmp_path):
    farm = tmp_path / "farm"
    farm.mkdir()
    for name in ["sh", *COREUTILS]:
        (farm / name).symlink_to(shutil.which(name))
    report = report_from_host(server(f"PATH={farm} exec sh -s").ask, [])
    assert report.kernel == os.uname().release
    assert report.memory_mib and report.numa_nodes is not None and report.file_systems
    assert report.sources["services"] == "absent: systemctl is not installed"
    assert report.sources["listeners"].startswith("/proc/net/tcp")


def test_what_nvidia_smi_says_there(server, tmp_path):
    (tmp_path / "query").write_text(QUERY)
    smi(tmp_path, f'[ "$1" = -q ] && exec cat {tmp_path / "query"}\nexit 1')
    report = report_from_host(server(f"PATH={tmp_path}:$PATH exec sh -s").ask, [])
    assert [gpu.pci_bus_id for gpu in report.gpus] == ["0000:c1:00.0", "0001:c1:00.0"]
    assert report.gpus[0].power_limit_w == 400
    assert report.driver == "580.95.05"


def test_an_nvidia_smi_that_hangs_there_loses_its_own_facts_only(server, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "STAGE_LIMIT_S", 3)
    smi(tmp_path, "exec sleep 300")
    start = time.monotonic()
    report = report_from_host(server(f"PATH={tmp_path}:$PATH exec sh -s").ask, [])
    assert time.monotonic() - start < 10
    assert report.kernel and report.file_systems
    assert report.sources["gpus.memory_mib"] == "absent: nvidia-smi gave no answer in time"
    assert any("out of time there" in note and "commands smi_query" in note for note in report.notes), report.notes


def smi(folder, code: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{code}\n")
    (folder / "nvidia-smi").chmod(0o755)


def test_noise_of_a_login_before_the_frame(server):
    report = report_from_host(server("echo 'Welcome to the machine'; echo; exec sh -s; echo bye").ask, [])
    assert report.kernel == os.uname().release


def test_a_refused_key(server):
    assert "the login was refused; expected a key that works" in failure(server(key="other_key"))


def test_an_unknown_host_key(server):
    assert "its host key is not known" in failure(server(known=None))


def test_a_changed_host_key(server):
    assert "its host key changed" in failure(server(known="wrong"))


def test_nobody_listens(server):
    assert "the connection was refused" in failure(server(running=False))


def test_a_name_that_does_not_resolve(server):
    assert "no such host" in failure(server(running=False, name="no-such-host.invalid"))


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "", "a b", "user@", "a;b", "user@-x"])
def test_what_is_no_host(host):
    with pytest.raises(InputError, match="is no host; expected user@host"):
        report_from_host(host, [])


def test_without_ssh(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProbeIncomplete, match="ssh cannot be run"):
        report_from_host("machine", [])


def test_a_shell_that_is_none(server):
    assert "its shell ended with code 1" in failure(server("exit 1"))


def test_silence(server):
    start = time.monotonic()
    assert "no further answer within 1 s" in failure(server("exec sleep 300"), limit_s=1)
    assert time.monotonic() - start < 5


def test_a_hang_before_the_first_fact(server):
    assert "no further answer within 1 s" in failure(server("sh -s | head -c 60; exec sleep 300"), limit_s=1)


def test_a_hang_in_the_middle_keeps_what_came_and_no_half_list(server):
    said = []
    made = server("sh -s | head -c 3000; exec sleep 300")
    report = report_from_host(made.ask, [], limit_s=3, say=said.append)
    assert "stopped in the middle: no further answer within 3 s" in said[-1]
    assert any("stopped in the middle" in note for note in report.notes)
    assert "stopped in the middle" in report.sources["services"]
    assert report.services is report.pci_devices is report.engines is None
    assert report.hostname is not None


def test_a_connection_cut_in_the_middle(server):
    report = report_from_host(server("sh -s | head -c 3000; kill -9 $PPID").ask, [], limit_s=20)
    assert any("stopped in the middle" in note for note in report.notes)
    assert report.hostname


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
@pytest.mark.parametrize("what", ["machine", "all"])
def test_interrupted_it_leaves_no_ssh(server, tmp_path, number, code, what):
    made = server("exec sleep 300")
    words = [*APPLIANCE, "recon", what, "--host", made.ask, "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not clients(tmp_path):
        time.sleep(0.05)
    assert clients(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == ""
    assert "interrupted" in err and "Traceback" not in err


def test_the_command_line(server):
    made = server()
    done = subprocess.run(
        [*APPLIANCE, "recon", "machine", "--host", made.ask, "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kernel"] == os.uname().release
    assert f"asking {made.ask}" in done.stderr
    made.stop()
    made.process = None
    done = appliance("recon", "machine", "--host", made.ask)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1].startswith("error: machine: the connection was refused")
