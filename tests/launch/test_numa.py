import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cpu_list import as_text
from appliance.errors import InputError
from appliance.launch import numa

needs_a_node = pytest.mark.skipif(
    not Path("/sys/devices/system/node/node0").exists(), reason="the kernel shows no node"
)

AFTER_EXEC = """
import os, sys
from appliance.launch import numa
numa.bind(0)
os.execv(sys.executable, [sys.executable, "-c",
    "import os; b = bytearray(1 << 24);"
    "print(sorted(os.sched_getaffinity(0))); print(open('/proc/self/numa_maps').read())"])
"""


@needs_a_node
def test_cpus_and_memory_policy_survive_exec():
    done = subprocess.run([sys.executable, "-c", AFTER_EXEC], capture_output=True, text=True, check=True)
    cpus, _, maps = done.stdout.partition("\n")
    assert set(eval(cpus)) <= numa.node_cpus(0)
    policies = [line.split()[1] for line in maps.splitlines() if line.strip()]
    assert policies
    assert set(policies) == {"bind:0"}


def refuse(node):
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_a_container_that_may_not_bind_memory_is_told_what_it_needs(tmp_path, monkeypatch):
    for node in (0, 1):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}/cpulist").write_text(as_text(os.sched_getaffinity(0)) + "\n")
    monkeypatch.setattr(numa, "bind_memory", refuse)
    with pytest.raises(InputError, match="a container needs --cap-add SYS_NICE"):
        numa.bind(0, nodes=tmp_path)


def test_where_there_is_one_node_memory_need_not_be_bound(tmp_path, monkeypatch, capsys):
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0/cpulist").write_text(as_text(os.sched_getaffinity(0)) + "\n")
    monkeypatch.setattr(numa, "bind_memory", refuse)
    numa.bind(0, nodes=tmp_path)
    assert "memory is not bound (Operation not permitted); it is the only node" in capsys.readouterr().err


def test_a_node_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(InputError, match="NUMA node 4095 does not exist; this machine has "):
        numa.bind(4095)


def test_a_node_whose_cpus_this_process_may_not_use(tmp_path):
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0/cpulist").write_text("4000-4001\n")
    with pytest.raises(InputError, match="NUMA node 0 has no CPU that this process may use: it has 4000-4001, allowed"):
        numa.bind(0, nodes=tmp_path)
