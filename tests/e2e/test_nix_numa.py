"""Two units of the module on a virtual machine with two NUMA nodes: each has the CPUs and memory of its node.

The worker is a stand-in that takes memory and says it is ready; units, systemd, kernel and nodes are real.
"""

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
"""


def test_each_worker_has_the_cpus_and_the_memory_of_its_node(tmp_path):
    found = evaluate(MODULE, package=PACKAGE, system="")
    assert found["refused"] == []
    files = {f"/etc/systemd/system/{name}": text for name, text in found["units"].items()}
    files |= {f"/etc/{name}": text for name, text in found["etc"].items()}
    files[f"{PACKAGE}/bin/appliance"] = STANDIN
    lines = run_in_guest(files, SCRIPT.format(mark=MARK), tmp_path)
    assert lines == [
        "nodes: 0 1",
        "prefill: CPUs 0, memory 0, policies bind:0 , pages on N0=",
        "decode: CPUs 1, memory 1, policies bind:1 , pages on N1=",
    ]
