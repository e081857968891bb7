"""All-reduce among real processes of torch.distributed, over gloo on the CPU in place of NCCL."""

import json
import os
import subprocess
import sys

import pytest

from appliance.preflight.probes.all_reduce import MODULE, specify
from appliance.preflight.probes.probe import Subject
from appliance.recon.engine import installed
from tests.helpers.healthy import machine, plan


def test_one_group_a_worker_in_its_own_environment():
    groups = specify(Subject(machine(), plan()))["groups"]
    assert [(group["name"], group["ranks"], group["port"]) for group in groups] == [
        ("prefill", 4, 30030),
        ("decode", 4, 30031),
    ]
    assert groups[1]["environment"]["CUDA_VISIBLE_DEVICES"] == "4,5,6,7"


@pytest.mark.skipif(installed("torch") is None, reason="torch is not installed")
def test_two_ranks_over_gloo():
    group = {"name": "pair", "ranks": 2, "port": None, "environment": dict(os.environ)}
    spec = json.dumps({"groups": [group], "backend": "gloo"})
    done = subprocess.run(
        [sys.executable, "-m", MODULE], input=spec, capture_output=True, text=True, timeout=120, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    told = {line["measure"]["name"]: line["measure"]["value"] for line in lines if "measure" in line}
    assert set(told) == {"pair all-reduce of 2, 16 KiB", "pair all-reduce of 2, 64 MiB, bus bandwidth"}
    assert all(value > 0 for value in told.values())
    assert [line["problem"] for line in lines if "problem" in line] == []


@pytest.mark.skipif(installed("torch") is None, reason="torch is not installed")
def test_a_rank_that_cannot_join_is_a_problem_in_words():
    group = {"name": "pair", "ranks": 1, "port": None, "environment": dict(os.environ)}
    spec = json.dumps({"groups": [group], "backend": "no-such-backend"})
    done = subprocess.run(
        [sys.executable, "-m", MODULE], input=spec, capture_output=True, text=True, timeout=120, check=True
    )
    (problem,) = [line["problem"] for line in map(json.loads, done.stdout.splitlines()) if "problem" in line]
    assert problem.startswith("pair, rank 0: ended with 1")
