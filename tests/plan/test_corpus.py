"""Every public machine gets a plan that holds together, or is refused in one line."""

from functools import cache
from pathlib import Path

import pytest

from appliance.documents import EngineReport, Plan
from appliance.errors import ApplianceError
from appliance.plan.gpu import Wishes, plan_on_gpus
from appliance.plan.nix_text import nix_text
from appliance.recon.machine.pasted import report_from
from appliance.recon.model.inspect import Wanted, inspect
from tests.helpers.gpu_machines import RTX
from tests.recon.machine.test_corpus import name, named

ENGINE = EngineReport(version="0.5.23", python="3.12.3", packages={})
MODELS = ["01-deepseek-v4-flash", "12-deepseek-v3", "31-qwen3-235b-a22b-fp8", "45-meta-llama-3.1-8b"]
REFUSED = {
    "12-1x-h200-mig-vllm": "MIG divides it",
    "26-1x-gb10-arm": "the memory of GPU 0 is not known",
}
"""Machines that no model can be planned for, whatever it is."""


@cache
def model(folder: Path):
    return inspect(str(folder), Wanted())


def outcome(path: Path, folder: Path) -> Plan | str:
    """The plan for a machine and a model, or why there is none."""
    machine = report_from(path.read_bytes(), path.name)
    try:
        return plan_on_gpus(machine, model(folder), ENGINE, Wishes(gpu_name=RTX))
    except ApplianceError as error:
        assert "\n" not in str(error)
        return str(error)


@pytest.mark.parametrize("path", [*named("topo"), *named("env")], ids=name)
@pytest.mark.parametrize("folder", MODELS)
def test_a_machine_and_a_model(corpus, path, folder):
    found = outcome(path, corpus / "models" / folder)
    if isinstance(found, str):
        assert found.startswith("no plan: ") or REFUSED[path.stem] in found
        return
    machine = report_from(path.read_bytes(), path.name)
    nodes = {gpu.index: gpu.numa_node for gpu in machine.gpus}
    for worker in found.workers:
        assert len(worker.gpus) == worker.tp_size
        assert worker.numa_node is None or {nodes[gpu] for gpu in worker.gpus} == {worker.numa_node}
    used = [gpu for worker in found.workers for gpu in worker.gpus]
    assert len(used) == len(set(used))
    assert nix_text(found).startswith("# topology ")


def test_the_reference_machine(corpus):
    machine = corpus / "env" / "27-8x-rtxpro6000-dual-epyc-9575f-bundle.txt"
    found = outcome(machine, corpus / "models" / MODELS[0])
    assert [(worker.role, worker.gpus, worker.numa_node) for worker in found.workers] == [
        ("prefill", [0, 1, 2, 3], 0),
        ("decode", [4, 5, 6, 7], 1),
    ]
    assert found.rank_pairs() == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_seven_of_eight(corpus):
    found = outcome(corpus / "env" / "29-7-of-8-b300-acceptance-bundle.txt", corpus / "models" / MODELS[0])
    assert [len(worker.gpus) for worker in found.workers] == [2, 2]
    assert any("idle" in reason for reason in found.reasons)


def test_interleaved_nodes_are_grouped_by_node_and_not_by_index(corpus):
    found = outcome(corpus / "env" / "17-8x-h800-interleaved-sglang.txt", corpus / "models" / MODELS[3])
    prefill, decode = found.workers
    assert sorted(prefill.gpus) == [0, 1, 2, 3] and prefill.gpus == [0, 3, 1, 2]
    assert decode.gpus == [4, 7, 5, 6]
