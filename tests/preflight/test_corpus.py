"""The rules on every public machine of the corpus: no error on a healthy one, and each warning defended here."""

import os
from pathlib import Path

import pytest

from appliance.preflight.catalogue import catalogue
from appliance.preflight.evaluate import evaluate
from appliance.preflight.facts import Facts
from appliance.recon.machine.pasted import report_from
from tests.conftest import CORPUS_SETTING
from tests.helpers.healthy import engine, model, plan

FOLDER = Path(os.environ.get(CORPUS_SETTING) or "corpus-is-absent")
FILES = sorted(path for kind in ("env", "topo") for path in (FOLDER / kind).glob("*.txt")) or [None]

ERRORS = {
    "02-5090-4090-3090-mixed-vllm": {
        "torch-without-gpu-code": "torch's own warning in the thread: cu126 does not support sm_120",
    },
    "05-4x-rtx5090-sglang": {"torch-without-gpu-code": "cu126 wheels carry no sm_120"},
}
"""Machines that are not healthy, with the error that the thread or its dump confirms."""

WARNINGS = {
    "02-5090-4090-3090-mixed-vllm": {
        "gpus-unlike": "the thread's fault: the kernel was chosen by the first of three unlike cards",
        "driver-of-windows": "WSL: a Windows driver, no NUMA, no CUDA IPC",
        "jit-compiler-old": "CUDA 12.0 beside an RTX 5090: whatever compiles at run time fails",
    },
    "03-2x-rtx5090-nccl-700": {
        "nccl-older-than-gpu": "the reporter's own answer: a newer NCCL",
        "jit-compiler-old": "12.8 does not know sm_120f, which FlashInfer compiles for today",
        "engine-unstamped": "built from a tree with local changes",
    },
    "05-4x-rtx5090-sglang": {"jit-compiler-old": "CUDA 12.2 beside RTX 5090"},
    "06-1x-rtx5090-sglang-undefined-symbol": {
        "torch-is-nightly": "the thread's fault: sgl_kernel built against another torch",
        "jit-compiler-old": "12.8 does not know sm_120f",
        "engine-unstamped": "vllm from a tree with local changes",
    },
    "12-1x-h200-mig-vllm": {"gpu-partitioned": "the thread's fault: a MIG UUID where a number is expected"},
    "16-8x-h100-bridged-pairs-sglang": {"nvlink-uneven": "one pair has 17 links of 18"},
    "17-8x-h800-interleaved-sglang": {"engine-unstamped": "vllm from a tree with local changes"},
    "20-1x-4090-affinity-na": {"driver-of-windows": "WSL"},
    "29-7-of-8-b300-acceptance-bundle": {"gpu-count-odd": "the eighth card, 0000:B5:00.0, is missing"},
    "22-5-of-8-h100": {"gpu-count-odd": "a container that was given five of eight"},
    "23-8x-h100-pairwise-nvlink-degraded": {"nvlink-uneven": "one pair has 17 links of 18"},
    "30-4x-h100nvl-numa-range": {"gpu-node-unknown": "a guest that says 0-1 for each GPU"},
    "31-8x-h20-numa-range": {"gpu-node-unknown": "a container that says 0-1 for each GPU"},
    "41-8x-a800pcie-uneven-bridges": {"nvlink-uneven": "bridges of 8, 6 and 4 links"},
    "66-7-of-8-gpus-tabs-and-blanks": {"gpu-count-odd": "seven of eight"},
}
"""Each warning on a machine of the corpus, with why it is right to warn."""


def name(path: Path | None) -> str:
    return path.stem if path else "absent"


def found(facts: Facts, severity: str) -> set[str]:
    results = evaluate(catalogue().values(), facts)
    assert [result for result in results if "failed on these facts" in (result.reason or "")] == []
    return {result.rule for result in results for finding in result.findings if finding.severity == severity}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_errors_and_warnings_are_those_that_are_defended(corpus, path):
    machine = report_from(path.read_bytes(), path.name)
    for severity, defended in (("error", ERRORS), ("warning", WARNINGS)):
        assert found(Facts(machine=machine), severity) == defended.get(path.stem, {}).keys(), severity


def test_the_reference_machine_with_plan_model_and_engine(corpus):
    path = FOLDER / "env/27-8x-rtxpro6000-dual-epyc-9575f-bundle.txt"
    facts = Facts(machine=report_from(path.read_bytes(), path.name), engine=engine(), model=model(), plan=plan())
    assert found(facts, "error") == set()
    assert found(facts, "warning") == set()


def test_a_rank_map_that_ignores_the_switches_of_the_reference_machine(corpus):
    path = FOLDER / "env/27-8x-rtxpro6000-dual-epyc-9575f-bundle.txt"
    machine = report_from(path.read_bytes(), path.name)
    wrong = plan(decode={"gpus": [4, 6, 5, 7]})
    assert "rank-map-splits-switch" in found(Facts(machine=machine, plan=wrong), "warning")


def test_a_group_over_both_sockets_of_the_reference_machine(corpus):
    path = FOLDER / "env/27-8x-rtxpro6000-dual-epyc-9575f-bundle.txt"
    machine = report_from(path.read_bytes(), path.name)
    wrong = plan({"gpus": [0, 1, 4, 5]}, {"gpus": [2, 3, 6, 7]})
    assert {"worker-spans-sockets", "nccl-on-turin"} <= found(Facts(machine=machine, plan=wrong), "warning")


def test_a_worker_that_is_bound_to_the_other_socket_of_a_real_machine(corpus):
    path = FOLDER / "topo/01-8x-rtxpro6000-dual-epyc-pcie-switch.txt"
    machine = report_from(path.read_bytes(), path.name)
    assert "worker-far-from-gpus" in found(Facts(machine=machine, plan=plan({"numa_node": 1})), "error")
    assert "worker-far-from-gpus" not in found(Facts(machine=machine, plan=plan()), "error")


MODELS = FOLDER / "models"


def report_of(folder: str):
    from appliance.recon.model.folder import read_folder
    from appliance.recon.model.report import report_on

    return report_on(read_folder(MODELS / folder))


def test_v4_flash_0731_has_no_mtp_layer_for_nextn(corpus):
    from tests.helpers.healthy import both

    nextn, dspark = both("--speculative-algorithm", "NEXTN"), both("--speculative-algorithm", "DSPARK")
    with_mtp, without = report_of("01-deepseek-v4-flash"), report_of("02-deepseek-v4-flash-0731")
    rule = "speculation-without-drafts"
    assert rule in found(Facts(model=without, plan=nextn), "error")
    assert rule not in found(Facts(model=without, plan=dspark), "error")
    assert rule not in found(Facts(model=with_mtp, plan=nextn), "error")


def test_v41_flash_does_not_fit_four_gpus_and_v4_flash_does(corpus):
    path = FOLDER / "env/27-8x-rtxpro6000-dual-epyc-9575f-bundle.txt"
    machine = report_from(path.read_bytes(), path.name)
    for folder, fits in (("01-deepseek-v4-flash", True), ("03-deepseek-v4.1-flash", False)):
        errors = found(Facts(machine=machine, model=report_of(folder), plan=plan()), "error")
        assert ("weights-do-not-fit" not in errors) == fits, folder


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in MODELS.glob("*/facts.yaml")) or [None])
def test_rules_hold_on_every_public_configuration(corpus, folder):
    if folder.startswith(("11-", "42-")):
        pytest.skip("names no architecture: refused by recon")
    found(Facts(model=report_of(folder), plan=plan()), "error")
