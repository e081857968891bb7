import json
import subprocess

import pytest

from tests.helpers.cli import APPLIANCE, appliance, refused
from tests.helpers.topology_text import matrix, two_nodes


@pytest.fixture
def pasted(tmp_path):
    """A pasted matrix of eight GPUs on two nodes, in a file."""
    path = tmp_path / "topo.txt"
    cpus = ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4
    path.write_text(matrix(two_nodes(8, nics=4), 8, cpus, ["0"] * 4 + ["1"] * 4))
    return path


def test_a_pasted_matrix_as_a_document(pasted):
    done = appliance("recon", "machine", "--from", pasted, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [gpu["numa_node"] for gpu in report["gpus"]] == [0] * 4 + [1] * 4
    assert [(node["id"], node["cpus"], node["gpus"]) for node in report["numa_nodes"]] == [
        (0, "0-63,128-191", [0, 1, 2, 3]),
        (1, "64-127,192-255", [4, 5, 6, 7]),
    ]
    assert {"a": "GPU0", "b": "GPU1", "kind": "PIX"} in report["links"]
    assert {"a": "GPU0", "b": "NIC0", "kind": "PIX"} in report["links"]


def test_from_stdin_and_from_a_saved_report(pasted, tmp_path):
    words = [*APPLIANCE, "recon", "machine", "--from", "-", "--json"]
    piped = subprocess.run(words, input=pasted.read_bytes(), capture_output=True, check=True)
    saved = tmp_path / "machine.json"
    saved.write_bytes(piped.stdout)
    assert appliance("recon", "machine", "--from", saved, "--json").stdout == piped.stdout.decode()
    saved.write_text(json.dumps({"machine": json.loads(piped.stdout), "engine": {}}))
    assert appliance("recon", "machine", "--from", saved, "--json").stdout == piped.stdout.decode()


@pytest.mark.parametrize("gpus", [1, 8, 12, 13, 200])
def test_the_table_fits_80_columns(tmp_path, gpus):
    path = tmp_path / "topo.txt"
    path.write_text(matrix(two_nodes(gpus, nics=min(gpus, 12)), gpus, ["64-127,192-238"] * gpus, own=["26"] * gpus))
    done = appliance("recon", "machine", "--from", path)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert f"{gpus} GPUs" in done.stdout


def test_every_text_of_the_corpus_fits_80_columns(corpus):
    from appliance.cli.machine_table import lines
    from appliance.recon.machine.pasted import report_from

    for path in [*corpus.glob("topo/*.txt"), *corpus.glob("env/*.txt")]:
        assert max(map(len, lines(report_from(path.read_bytes(), path.name)))) <= 80, path.name


def test_this_machine_as_a_table_with_progress_on_stderr():
    done = appliance("recon", "machine")
    assert done.returncode == 0
    assert "folder" in done.stdout and "kernel" in done.stdout
    assert "reading this machine" in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_input_that_cannot_be_read(tmp_path):
    assert "no such file; expected `nvidia-smi topo -m`" in refused("recon", "machine", "--from", tmp_path / "absent")
    assert "cannot be read (Is a directory)" in refused("recon", "machine", "--from", tmp_path)
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 10)
    assert "no fact about a machine in 2560 bytes" in refused("recon", "machine", "--from", noise)
    noise.write_text("{")
    assert "not JSON" in refused("recon", "machine", "--from", noise)
    noise.write_text('{"kind": "MachineReport", "engines": [{"name": "x", "wrong": 1}]}')
    assert "engines.0.wrong: unknown field; expected one of command, " in refused("recon", "machine", "--from", noise)
    assert "is no host" in refused("recon", "machine", "--host", "a b")


def test_one_machine_at_a_time(pasted):
    done = appliance("recon", "machine", "--from", pasted, "--host", "x")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_what_somebodys_file_says_is_no_order_to_a_terminal(tmp_path):
    from appliance.cli.machine_table import lines
    from appliance.documents import MachineReport

    evil = "\x1b[31mred\x07\r\u202e\u2028"
    report = MachineReport(gpus=[{"index": 0, "name": evil}], hostname=evil, kernel=evil, notes=[evil])
    text = "".join(lines(report))
    assert "?[31mred?" in text
    assert not [character for character in text if not character.isprintable()]


def test_a_text_without_an_end_is_refused(tmp_path):
    assert "longer than the 67108864 bytes" in refused("recon", "machine", "--from", "/dev/zero")
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run([*APPLIANCE, "recon", "--from", "-"], stdin=endless, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1][:26]) == (2, "error: stdin: longer than ")
