"""Any bytes: no exception but the typed error, in one line; and time that grows with the size and no faster."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from appliance.documents import MachineReport
from appliance.errors import InputError
from appliance.recon.machine.pasted import report_from, report_from_text
from appliance.recon.machine.probes import running, storage
from appliance.recon.machine.remote import frame
from appliance.recon.machine.text import environment_dump, lscpu, lspci, smi_query, smi_table
from appliance.recon.machine.text.clean import as_text, clean
from appliance.recon.machine.text.topology import topologies
from tests.helpers.topology_text import matrix, two_nodes

PIECES = [
    *("GPU0", "GPU1", "NIC0", "mlx5_0", "GPU", "X", "PIX", "SYS", "NV18", "N/A", "CPU Affinity", "NUMA Affinity"),
    *("GPU NUMA ID", "0-31", "0,2,4,6,8,10", "0-47,96-1430N/A", "NUMA 0", "\t", "\n", "\r\n", " ", "  ", "|", ">", ":"),
    *(
        "GPU 00000000:01:00.0",
        "Product Name : x",
        "Processes",
        "Process ID : 1",
        "Used GPU Memory : 1 MiB",
        "node 0 cpus:",
    ),
    *(
        "NUMA node0 CPU(s): 0-3",
        "node 0 size: 1 MB",
        "GPU 0: A (UUID: GPU-12345678)",
        "index, name",
        "0, A",
        "sglang: 1",
    ),
    *(
        "00:01.0 PCI bridge: a",
        "\tACSCtl: ReqRedir+",
        "\x1b[4m",
        "\x1b]0;",
        "9" * 30,
        "{",
        "}",
        "[pip3] torch==1",
        "$ uname -r",
    ),
    *("MIG Mode", "Current : Enabled", "FB Memory Usage", "Total : 99999999999999999999 MiB", "NIC0: mlx5_0", "-", ","),
]
pasted = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=60).map(" ".join).map(str.encode)
glued = st.lists(st.sampled_from(PIECES), max_size=60).map("".join).map(str.encode)


@given(st.binary(max_size=2000) | pasted | glued)
@example(b"\xff\xfe" + "GPU0\tGPU1\nGPU0\t X \tPIX\n".encode("utf-16-le"))
@example(b'{"kind": "MachineReport", "gpus": [{"index": 0, "wrong": 1}]}')
@example(b'{"kind": "MachineReport", "engines": [{"name": "a", "wrong": 1}]}')
@example(b'{"machine": []}')
@example(b"{" * 100_000)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_report_or_one_line(data):
    try:
        report = report_from(data, "pasted")
    except InputError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("pasted: ")
    else:
        assert MachineReport.parse(report.to_json(), where="saved") == report


RECORDS = [
    *(b"\nM ", b"begin 1\n", b"f /a\n", b"c x\n", b"r x 0\n", b"end 1\n", b"d /a\n1 41ed /a/b\n", b"x /a\n00 1\n"),
    *(b"k /\na b c 1 2 3 /\n", b"h 1 /\n{}", b"l /a\n/b\n", b"s x 124\n", b"n /a\nb\n", b"v HOME\n/root\n"),
]


@given(st.binary(max_size=500) | st.lists(st.sampled_from(RECORDS)).map(b"".join))
def test_any_frame_is_a_source(data):
    source = frame.parse(data, "M", {})
    source.names("/a"), source.sizes("/a"), source.run("x"), source.space("/"), source.data("/a")


@given(st.text(max_size=300))
def test_the_readers_of_the_kernels_tables(text):
    running.from_ss(text)
    running.from_kernel(text)
    storage.mount_points(text)
    storage.architecture(text)


PARSERS = {
    "topology": topologies,
    "nvidia-smi -q": smi_query.parse,
    "table": smi_table.parse_table,
    "list": smi_table.parse_list,
    "values": smi_table.parse_csv,
    "lscpu": lscpu.parse,
    "lspci": lspci.parse,
    "dump": environment_dump.parse,
    "sessions": environment_dump.parse_sessions,
    "clean": clean,
}
HARD = {
    "one line of blanks": " ",
    "one line of labels": "GPU1 ",
    "one line of cells": "GPU0 X ",
    "labels, a line each": "GPU1\n",
    "headers only": "GPU0 GPU1\n",
    "header and odd line": "GPU0 GPU1 CPU Affinity\nGPU\n",
    "rows only": "GPU0 X PIX\n",
    "numbers": "0,",
    "colons": "a : ",
    "escapes": "\x1b[",
    "bars": "|",
    "dashes": "GPU 0,1,2,",
    "sections": "GPU 00000000:01:00.0\nProcesses\nProcess ID : 1\n",
    "words of a row": "GPU0 X\nNODE ",
}


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS.keys())
@pytest.mark.parametrize("piece", HARD.values(), ids=HARD.keys())
def test_time_grows_with_the_size(parser, piece):
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        parser(text)
        return time.process_time() - start

    small = min(seconds(20_000) for _ in range(3))
    # eight times the text in at most thirty times the time: a parser that is quadratic takes sixty-four times
    assert min(seconds(160_000) for _ in range(2)) < max(30 * small, 0.05)


WHOLE = {
    "one row below thousands of labels": lambda n: " ".join(f"GPU{i % 9999}" for i in range(n // 8)) + "\nGPU0 X PIX\n",
    "many matrices": lambda n: "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n" * (n // 34),
    "GPUs and nodes": lambda n: "".join(
        f"GPU{i % 9999}  X {i}-{i}\nNUMA node{i} CPU(s): {i}\n" for i in range(n // 40)
    ),
    "GPUs and devices": lambda n: "".join(
        f"GPU 0000{i % 9999:04d}:01:00.0\n{i % 9999:04d}:01:00.0 3D controller: NVIDIA a\n" for i in range(n // 66)
    ),
    "one line": lambda n: "GPU0 X PIX 0-31 " * (n // 16),
    "adapters without a name": lambda n: "GPU0 " + " ".join(f"mlx5_{i}" for i in range(n // 10)) + "\nGPU0 X PIX\n",
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE.keys())
def test_time_of_a_whole_report_grows_with_the_size(text):
    def seconds(size: int) -> float:
        cleaned = text(size)
        start = time.process_time()
        report_from_text(cleaned)
        return time.process_time() - start

    small = min(seconds(20_000) for _ in range(3))
    assert min(seconds(160_000) for _ in range(2)) < max(30 * small, 0.1)


def test_a_report_of_200_gpus_in_under_half_a_second():
    data = matrix(two_nodes(200), 200).encode()
    start = time.process_time()
    report = report_from(data, "pasted")
    assert time.process_time() - start < 0.5
    assert (len(report.gpus), len(report.links)) == (200, 19900)


def test_megabytes_of_noise_are_refused_in_seconds():
    start = time.process_time()
    with pytest.raises(InputError):
        report_from(b"a line of a log : of something\n" * 200_000, "pasted")
    assert time.process_time() - start < 20


def test_encodings():
    assert as_text("\ufeffGPU0".encode()) == "GPU0"
    assert as_text("GPU0".encode("utf-16")) == "GPU0"
    assert clean("\x1b]0;title\x07\x1b[1;31mGPU0\x1b[0m\r\nX\x00") == "GPU0\nX"
