"""A virtual machine with two NUMA nodes: each unit of the module has the CPUs and memory of its node, and the memory
probe of preflight copies where it says.

The worker is a stand-in that takes memory and says it is ready; units, systemd, kernel and nodes are real.
"""

from pathlib import Path

import appliance
from appliance.preflight.probes.memory_copy import BUFFER
from tests.helpers.nix_module import evaluate
from tests.helpers.numa_guest import MARK, run_in_guest

PACKAGE = "/srv/package"
MODULE = """{ services.sglang-appliance = {
    enable = true;
    topology = "pd";
    engine.device = "cpu";
    model = { servedName = "stand-in"; path = "/srv/models/stand-in"; };
    workers.prefill = { role = "prefill"; numaNode = 0; };
    workers.decode = { role = "decode"; numaNode = 1; };
}; }"""

STANDIN = """\
#!/usr/bin/python3
# Stand-in for the appliance: a launched worker takes 64 MiB and reports that it is ready; all else succeeds at once.
import os, signal, socket, sys
if sys.argv[1] == "launch":
    held = bytearray(os.urandom(1 << 20) * 64)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    signal.pause()
"""

SCRIPT = """\
useradd --system --home-dir /var/lib/sglang-appliance sglang
systemctl start sglang-appliance.target
echo "{mark}nodes: $(cat /sys/devices/system/node/node0/cpulist) $(cat /sys/devices/system/node/node1/cpulist)"
for worker in prefill decode; do
    pid=$(systemctl show sglang-$worker.service -P MainPID)
    allowed() {{ grep $1_allowed_list /proc/$pid/status | cut -f 2; }}
    policies=$(cut -d ' ' -f 2 /proc/$pid/numa_maps | sort -u | tr '\\n' ' ')
    # pages of the largest mapping, by node: the 64 MiB
    largest=$(grep -o 'anon=[0-9]*.*' /proc/$pid/numa_maps | sort -t = -k 2 -n | tail -n 1)
    pages=$(grep -o 'N[01]=' <<< "$largest" | tr -d '\\n')
    echo "{mark}$worker: CPUs $(allowed Cpus), memory $(allowed Mems), policies $policies, pages on $pages"
done
echo "{mark}$(PYTHONPATH=/srv/project python3 /srv/probe)"
"""
PROBED = ["cpu_list", "errors", "launch/__init__", "launch/numa", "preflight/__init__", "preflight/probes/__init__"]
PROBED += ["__init__", "preflight/probes/memory_copy"]
PROBE = """\
from pathlib import Path
from appliance.preflight.probes.memory_copy import copy_rate

def taken(node):
    lines = Path(f"/sys/devices/system/node/node{node}/numastat").read_text().split()
    counts = dict(zip(lines[::2], map(int, lines[1::2])))
    return counts["local_node"], counts["other_node"]

for cpu, memory in ((0, 0), (0, 1), (1, 0)):
    before = taken(memory)
    rate = copy_rate({cpu}, memory)
    grown = [now - then for now, then in zip(taken(memory), before)]
    side = "local" if grown[0] > grown[1] else "other"
    print(f"CPU {cpu}, memory {memory}: {side}, {max(grown) * 4096}, {rate > 0}", end="; ")
"""


def test_workers_and_probe_have_the_cpus_and_the_memory_of_the_node_they_name(tmp_path):
    found = evaluate(MODULE, package=PACKAGE, system="")
    assert found["refused"] == []
    files = {f"/etc/systemd/system/{name}": text for name, text in found["units"].items()}
    files |= {f"/etc/{name}": text for name, text in found["etc"].items()}
    files[f"{PACKAGE}/bin/appliance"] = STANDIN
    files["/srv/probe"] = PROBE
    source = Path(appliance.__file__).parent
    files |= {f"/srv/project/appliance/{name}.py": (source / f"{name}.py").read_text() for name in PROBED}
    lines = run_in_guest(files, SCRIPT.format(mark=MARK), tmp_path)
    assert lines[:3] == [
        "nodes: 0 1",
        "prefill: CPUs 0, memory 0, policies bind:0 , pages on N0=",
        "decode: CPUs 1, memory 1, policies bind:1 , pages on N1=",
    ]
    copies = [copy.split(": ") for copy in lines[3].rstrip("; ").split("; ")]
    assert [where for where, _ in copies] == ["CPU 0, memory 0", "CPU 0, memory 1", "CPU 1, memory 0"]
    for (_, found), side in zip(copies, ("local", "other", "other"), strict=True):
        took, size, copied = found.split(", ")
        assert (took, copied) == (side, "True") and int(size) >= 2 * BUFFER
