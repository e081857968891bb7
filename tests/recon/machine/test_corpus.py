"""Every public text of the corpus against what its side file says. The folder is read, so that a new file is a test."""

import os
from pathlib import Path

import pytest
import yaml

from appliance.documents import MachineReport
from appliance.recon.machine.pasted import report_from
from tests.conftest import CORPUS_SETTING

FOLDER = Path(os.environ.get(CORPUS_SETTING) or "corpus-is-absent")
NO_DEVICE = {"NIC41", "MA"}
"""What two lines of one legend hold by accident of the paste (a column's name): no device, so null here."""


def named(kind: str) -> list[Path | None]:
    return sorted((FOLDER / kind).glob("*.txt")) or [None]


def name(path: Path | None) -> str:
    return path.stem if path else "absent"


def read(path: Path) -> tuple[MachineReport, dict]:
    return report_from(path.read_bytes(), path.name), yaml.safe_load(path.with_suffix(".yaml").read_text())


def labels(report: MachineReport, side: dict) -> dict[str, str]:
    """The report's name of each adapter that the side file names: that has the column's label, the report NIC0..."""
    assert len(report.nics or []) == len(side["nics"])
    return {label: nic.name for (label, _), nic in zip(side["nics"], report.nics or [], strict=True)}


@pytest.mark.parametrize("path", named("topo"), ids=name)
def test_topology(corpus, path):
    report, side = read(path)
    expected = side["expect"]
    assert len(report.gpus) == side["gpu_count"]
    nodes = [gpu.numa_affinity if gpu.numa_node is None else gpu.numa_node for gpu in report.gpus]
    assert nodes == expected["numa_node"]
    assert [gpu.cpu_affinity for gpu in report.gpus] == expected["cpu_affinity"]
    assert [gpu.gpu_numa_id for gpu in report.gpus] == (expected["gpu_numa_id"] or [None] * len(report.gpus))
    if expected.get("cpu_affinity_truncated"):
        assert all(gpu.cpu_affinity_cut for gpu in report.gpus)
        assert all(node.cpus is None for node in report.numa_nodes)
    if expected.get("numa_is_range"):
        assert all(gpu.numa_node is None for gpu in report.gpus)


@pytest.mark.parametrize("path", named("topo"), ids=name)
def test_links(corpus, path):
    report, side = read(path)
    kinds = {(link.a, link.b): link.kind for link in report.links}
    gpus = [f"GPU{gpu.index}" for gpu in report.gpus]
    matrix = [["X" if a == b else kinds.get((a, b)) or kinds.get((b, a)) for b in gpus] for a in gpus]
    assert matrix == side["gpu_links"]
    ours = labels(report, side)
    devices = [None if device in NO_DEVICE else device for _, device in side["nics"]]
    assert [nic.device for nic in report.nics or []] == devices
    for gpu, by_kind in side["nearest_nics"].items():
        for kind, adapters in by_kind.items():
            near = [label for label, own in ours.items() if kinds.get((gpu, own)) == kind]
            assert near == adapters


@pytest.mark.parametrize("path", named("env"), ids=name)
def test_environment(corpus, path):
    report, side = read(path)
    facts = side["facts"]
    packages = report.software.packages or {}
    assert list(dict.fromkeys(gpu.name for gpu in report.gpus)) == facts["gpu_models"]
    assert len(report.gpus) == facts["gpu_count"]
    assert report.driver == facts["driver"]
    if facts["cuda_runtime"].endswith("(driver)"):
        assert report.software.driver_cuda == facts["cuda_runtime"].split()[0]
    else:
        assert report.software.cuda_toolkit == absent(facts["cuda_runtime"])
    for package in ("torch", "vllm", "sglang"):
        assert packages.get(package) == absent(facts[package]), package
    assert report.software.torch_cuda == facts["torch_cuda"]
    assert report.cpu_model == facts["cpu_model"]
    assert report.processor.cpus == facts["cpus"]
    assert set(facts["env_vars_seen"] or []) <= set(report.environment or {})


@pytest.mark.parametrize("path", named("env"), ids=name)
def test_nodes_of_an_environment(corpus, path):
    report, side = read(path)
    lists = side["facts"]["numa_cpu_lists"]
    if lists and side["facts"]["cpus"]:
        assert {node.id: node.cpus or None for node in report.numa_nodes} == lists
        # a list that nvidia-smi cut is never taken for the whole one where lscpu is in the same text
        for gpu in report.gpus:
            if gpu.cpu_affinity_shown:
                assert gpu.cpu_affinity == lists[gpu.numa_node]
    elif lists:
        assert [node.id for node in report.numa_nodes] == sorted(lists)
        assert all(node.cpus is None for node in report.numa_nodes)


@pytest.mark.parametrize("path", [*named("topo"), *named("env")], ids=name)
def test_a_report_survives_being_saved_and_names_its_sources(corpus, path):
    report, _ = read(path)
    assert MachineReport.parse(report.to_json(), where="saved") == report
    assert report_from(report.to_json().encode(), "saved") == report
    assert report.sources["gpus"] and report.sources["gpus.cpu_affinity"]


def absent(text: str | None) -> str | None:
    return None if text in ("Could not collect", "Module Not Found") else text
