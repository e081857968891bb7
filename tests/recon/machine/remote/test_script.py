import re
import shutil
import subprocess

import pytest

from appliance.recon.machine.manifest import COMMANDS, TOGETHER
from appliance.recon.machine.remote import frame
from appliance.recon.machine.remote.script import script

SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_any_posix_shell_prints_a_whole_frame(shell):
    text = script("MARK", ["/it's a folder"])
    done = subprocess.run([*shell, "-s"], input=text.encode(), capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
    source = frame.parse(done.stdout, "MARK", {})
    assert source.begun and source.whole
    assert source.text("/proc/sys/kernel/osrelease") and source.names("/sys/devices/system/cpu")
    assert len(source.stages) == len(TOGETHER) + 4


def test_nothing_is_written():
    text = script("MARK", [])
    targets = re.findall(r"(?<![<0-9&])\d?>+\s*(\S+)", text)
    assert set(targets) <= {"/dev/null", "/dev/null;", "&1", "/dev/null)", "/dev/null'"}, set(targets)
    assert not re.search(r"\b(rm|mv|cp|mkdir|touch|tee|mktemp|ln|chmod|install|dd)\s", text)


def test_every_command_of_the_manifest_is_asked_for():
    assert sorted(name for names in TOGETHER for name in names) == sorted(COMMANDS)


def test_the_script_is_small():
    assert len(script("MARK", [])) < 16_000
