import time

import pytest

from appliance.recon.machine.text.clean import clean
from appliance.recon.machine.text.topology import topologies
from tests.helpers.topology_text import matrix, two_nodes, with_blanks, wrapped

EPYC = ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4
NODES = ["0"] * 4 + ["1"] * 4


def only(text: str):
    found = topologies(clean(text))
    assert len(found) == 1
    return found[0]


def affinities(topology) -> list[tuple]:
    rows = [topology.rows[f"GPU{index}"] for index in topology.gpus]
    return [(row.cpu_affinity, row.numa, row.gpu_numa_id) for row in rows]


def links(topology) -> list[list[str | None]]:
    labels = [f"GPU{index}" for index in topology.gpus] + topology.adapters
    return [["X" if a == b else topology.link(a, b) for b in labels] for a in labels]


MANGLED = {
    "as printed": lambda text: text,
    "tabs as blanks": with_blanks,
    "single blanks": lambda text: "\n".join(" ".join(line.split()) for line in text.split("\n")),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "old line ends": lambda text: text.replace("\n", "\r"),
    "first tab lost": lambda text: text.lstrip(),
    "trailing blanks": lambda text: "\n".join(line + " " * 90 for line in text.split("\n")),
    "quoted": lambda text: "\n".join("> " + line for line in text.split("\n")),
    "a table in a document": lambda text: "\n".join(line.replace("\t", " | ") for line in text.split("\n")),
    "other text around it": lambda text: f"$ nvidia-smi topo -m\n{text}\nGPU 0: a line of a log\nGPU0 is busy\n",
    "blank lines between": lambda text: text.replace("\n", "\n\n"),
}


@pytest.mark.parametrize("mangle", MANGLED.values(), ids=MANGLED.keys())
def test_a_matrix_however_it_was_pasted(mangle):
    kinds = two_nodes(8, nics=4)
    topology = only(mangle(matrix(kinds, 8, EPYC, NODES)))
    assert topology.gpus == list(range(8))
    assert affinities(topology) == [(cpus, node, None) for cpus, node in zip(EPYC, NODES, strict=True)]
    assert links(topology) == kinds
    assert topology.notes == []


@pytest.mark.parametrize("width", range(60, 200))
def test_lines_wrapped_by_a_terminal(width):
    kinds = two_nodes(8, nics=10)
    topology = only(wrapped(with_blanks(clean(matrix(kinds, 8, EPYC, NODES))), width))
    assert links(topology) == kinds
    assert affinities(topology) == [(cpus, node, None) for cpus, node in zip(EPYC, NODES, strict=True)]


def test_glued_cells_and_headings():
    text = with_blanks(matrix(two_nodes(4, nics=2), 4))
    text = text.replace("NIC1    CPU Affinity", "NIC1CPU Affinity").replace("SYS     SYS", "SYSSYS")
    assert "SYSSYS" in text
    assert links(only(text)) == two_nodes(4, nics=2)


def test_an_affinity_glued_to_its_node_is_taken_apart_only_where_one_way_fits():
    text = with_blanks(matrix(two_nodes(2), 2, ["0-47,96-143"] * 2)).replace(
        "96-143     0               N/A", "96-1430N/A"
    )
    assert affinities(only(text)) == [("0-47,96-143", "0", None)] * 2
    text = with_blanks(matrix(two_nodes(2), 2, ["0-4,7-123"] * 2)).replace(
        "7-123       0               N/A", "7-1230N/A"
    )
    assert "7-1230N/A" in text
    assert affinities(only(text)) == [(None, None, None)] * 2


def test_columns_that_old_drivers_do_not_have():
    kinds = two_nodes(4, nics=2)
    topology = only(matrix(kinds, 4, ["14-27"] * 4, columns=("CPU Affinity",), nic="mlx5_{}"))
    assert affinities(topology) == [("14-27", None, None)] * 4
    assert topology.devices == {"mlx5_0": "mlx5_0", "mlx5_1": "mlx5_1"}
    assert links(topology) == kinds
    assert affinities(only(matrix(two_nodes(2), 2, columns=()))) == [(None, None, None)] * 2


def test_not_available_and_empty_cells():
    for mangle in (lambda text: text, with_blanks):
        text = mangle(matrix(two_nodes(2), 2, ["0-11"] * 2, ["N/A"] * 2))
        assert affinities(only(text)) == [("0-11", None, None)] * 2
        text = mangle(matrix(two_nodes(2), 2, [""] * 2, [""] * 2))
        assert affinities(only(text)) == [(None, None, None)] * 2


def test_a_cpu_list_of_two_is_no_list_of_nodes():
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-1\t\tN/A\t\tN/A\n"
    assert affinities(only(text)) == [("0-1", None, None)]
    assert affinities(only(with_blanks(text))) == [("0-1", None, None)]


def test_several_nodes_and_the_memory_of_the_gpu_itself():
    assert affinities(only(matrix(two_nodes(2), 2, ["0-253"] * 2, ["0-1"] * 2)))[0] == ("0-253", "0-1", None)
    assert affinities(only(matrix(two_nodes(2), 2, own=["2", "10"]))) == [("0-31", "0", 2), ("0-31", "0", 10)]


def test_a_node_written_behind_the_row_by_hand():
    text = "      GPU0  GPU1\nGPU0   X    SYS    NUMA 0\nGPU1  SYS    X     (NUMA node 1)\n"
    assert affinities(only(text)) == [(None, "0", None), (None, "1", None)]


def test_the_legend_names_adapters_and_a_damaged_line_names_none():
    legend = "\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n  NIC1:   NUMA Affinity   GPU NUMA ID\n"
    topology = only(matrix(two_nodes(2, nics=3), 2) + legend)
    assert topology.devices == {"NIC0": "mlx5_bond_0", "NIC1": None, "NIC2": None}


def test_a_row_cut_short_loses_its_own_cells_only():
    text = matrix(two_nodes(4), 4)
    lines = text.split("\n")
    lines[2] = "\t".join(lines[2].split("\t")[:3])
    topology = only("\n".join(lines))
    assert links(topology) == two_nodes(4)  # the other half of the matrix has them
    assert any("cut short: GPU1" in note for note in topology.notes)


def test_halves_that_contradict_each_other_give_no_link():
    text = matrix(two_nodes(4), 4).replace("GPU1\tPIX", "GPU1\tSYS")
    topology = only(text)
    assert topology.link("GPU0", "GPU1") is None
    assert any("differ" in note for note in topology.notes)


def test_a_missing_row_and_a_missing_header():
    lines = matrix(two_nodes(4), 4).split("\n")
    topology = only("\n".join(line for line in lines if not line.startswith("GPU2")))
    assert topology.gpus == [0, 1, 2, 3]
    assert any("no row for GPU2" in note for note in topology.notes)
    assert links(only("\n".join(lines[1:]))) == two_nodes(4)


def test_two_matrices():
    text = matrix(two_nodes(2), 2) + "another machine\n" + matrix(two_nodes(4), 4)
    assert [topology.gpus for topology in topologies(clean(text))] == [[0, 1], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU 0: NVIDIA H200",
        "GPU0",
        "NIC0: mlx5_0",
        "GPU0\tGPU1\nGPU0\t X \tOK\nGPU1\tOK\t X \n",
        "System GPU0 X marks the spot",
    ],
)
def test_text_that_holds_no_matrix(text):
    assert topologies(clean(text)) == []


@pytest.mark.parametrize("gpus", [1, 2, 16, 200])
def test_any_number_of_gpus_in_under_half_a_second(gpus):
    """Of this process: other work on the machine does not count."""
    kinds = two_nodes(gpus)
    text = with_blanks(matrix(kinds, gpus))
    start = time.process_time()
    topology = only(text)
    assert time.process_time() - start < 0.5
    assert len(topology.gpus) == gpus
    assert topology.link("GPU0", "GPU1") == (None if gpus == 1 else kinds[0][1])
