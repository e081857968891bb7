"""Sharing between two units: which settings are taken over, and the probe on a real systemd."""

import json
import sys
from pathlib import Path

import pytest

from appliance.preflight.probes.sandbox import service_settings
from tests.helpers.systemd_machine import run_on_systemd

PLACE = Path(__file__).resolve().parents[3]
UNIT = """\
[Unit]
Description=a worker
[Service]
ExecStart=/bin/true
Type=notify
WatchdogSec=10
NoNewPrivileges=yes
ProtectSystem=strict
{more}
"""


def test_settings_are_those_of_the_service_section_that_say_what_it_may_do():
    text = "# /etc/systemd/system/x.service\n" + UNIT.format(more="PrivateIPC=yes\nDeviceAllow=char-nvidia* \\\n  rw")
    text += "[Install]\nWantedBy=multi-user.target\n# /etc/systemd/system/x.service.d/old.conf\n[Service]\nUser=other\n"
    assert service_settings(text) == [
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "PrivateIPC=yes",
        "DeviceAllow=char-nvidia*    rw",
        "User=other",
    ]


def probe(prefill: str, decode: str, tmp_path: Path) -> tuple[dict, dict]:
    """Run the probe on a machine that has both units installed. Returns numbers and facts."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PLACE), "PYTHONDONTWRITEBYTECODE": "1"}
    roles = [{"unit": f"sglang-{name}.service", "environment": environment} for name in ("prefill", "decode")]
    segment = "/dev/shm/appliance-probe-test"
    spec = json.dumps(
        {"roles": roles, "cuda": False, "limit_s": 30, "segment": segment, "folder": "/run/appliance-probe-test"}
    )
    (tmp_path / "spec").write_text(spec)
    units = {
        "sglang-prefill.service": UNIT.format(more=prefill),
        "sglang-decode.service": UNIT.format(more=decode),
    }
    script = f"""
export PYTHONPATH={PLACE} PYTHONDONTWRITEBYTECODE=1
{sys.executable} -W ignore -m appliance.preflight.probes.sandbox < {tmp_path}/spec
test ! -e {segment} && test ! -e /run/appliance-probe-test
systemctl list-units --all --plain --no-legend 'appliance-probe-*' | wc -l
"""
    visible = [PLACE, Path(sys.prefix), Path(sys.base_prefix)]
    output = run_on_systemd(units, script, tmp_path, visible).splitlines()
    lines = [json.loads(line) for line in output if line.startswith("{")]
    assert output[-1] == "0", output  # no transient unit is left
    assert [line["problem"] for line in lines if "problem" in line] == []
    numbers = {line["measure"]["name"]: line["measure"]["value"] for line in lines if "measure" in line}
    return numbers, dict(line["fact"] for line in lines if "fact" in line)


def test_units_of_one_user_share_memory(tmp_path):
    numbers, facts = probe("", "", tmp_path)
    assert facts["sandbox"] == "transient units with 2 and 2 settings of the installed ones"
    assert numbers == {"shared memory": 1, "process_vm_readv": 1}


def test_a_unit_with_shared_memory_and_capabilities_of_its_own_can_take_nothing(tmp_path):
    numbers, facts = probe("", "TemporaryFileSystem=/dev/shm\nCapabilityBoundingSet=", tmp_path)
    assert numbers == {"shared memory": 0, "process_vm_readv": 0}
    assert "No such file" in facts["shared memory"] and "not permitted" in facts["process_vm_readv"]


def test_a_unit_that_does_not_start_is_said_so(tmp_path):
    with pytest.raises(AssertionError, match="ended without an answer .Result=exit-code ExecMainStatus=217"):
        probe("User=no-such-user", "", tmp_path)
