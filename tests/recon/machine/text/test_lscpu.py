from appliance.recon.machine.text import lscpu

LSCPU = """Architecture:            x86_64
CPU(s):                  128
On-line CPU(s) list:     0-119,121-127
Off-line CPU(s) list:    120
Vendor ID:               GenuineIntel
Model name:              A Processor
CPU family:              6
Thread(s) per core:      2
Core(s) per socket:      32
Socket(s):               2
NUMA node(s):            3
NUMA node0 CPU(s):       0,2,4,6
NUMA node1 CPU(s):       1,3,5,7
NUMA node8 CPU(s):
Model name:              A little core beside it
"""


def test_lscpu():
    found = lscpu.parse(LSCPU)
    cpu = found.processor
    assert (cpu.model, cpu.cpus, cpu.sockets, cpu.cores_per_socket, cpu.family) == ("A Processor", 128, 2, 32, 6)
    assert (cpu.online, cpu.offline) == ("0-119,121-127", "120")
    assert found.nodes == {0: "0,2,4,6", 1: "1,3,5,7", 8: ""}


def test_numactl_alone_gives_the_nodes_with_memory_and_distances():
    text = """available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3 8 9
node 0 size: 1000 MB
node 0 free: 900 MB
node 1 cpus:
node 1 size: 2000 MB
node distances:
node   0   1
  0:  10  32
  1:  32  10
"""
    found = lscpu.parse(text)
    assert found.nodes == {0: "0-3,8-9", 1: ""}
    assert (found.memory_mib, found.free_mib) == ({0: 1000, 1: 2000}, {0: 900})
    assert found.distances == [[10, 32], [32, 10]]
    assert found.nodes_from == "numactl -H"


def test_a_language_other_than_english_gives_nothing_and_no_wrong_fact():
    found = lscpu.parse("Architektur:   x86_64\nModellname:   Ein Prozessor\nNUMA-Knoten0 CPU(s):  0-31\n")
    assert (found.processor.model, found.nodes) == (None, {})
