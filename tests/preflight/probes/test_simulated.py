"""Probes of GPUs on a simulated device, labelled as one: what they do with the numbers. No figure here is a GPU's."""

from dataclasses import replace

import pytest

from appliance.preflight.measure import known_probes
from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import Subject
from tests.helpers.healthy import machine, plan


def peers(**simulated):
    return watchdog.run(known_probes()["peers"], Subject(machine(), plan(), patience=4, simulated=simulated))


def values(result) -> dict[str, float]:
    return {measure.name: measure.value for measure in result.measures}


def test_each_pair_is_written_and_read_and_the_rank_map_at_once():
    result = peers(gb_s={"0->4 write": 37.0}, together={"0->4 write": 2.7})
    assert (result.status, result.device) == ("measured", "simulated")
    found = values(result)
    assert len(found) == 8 * 7 * 2 * 2 + 4
    assert found["GPU0 -> GPU4 write"] == pytest.approx(37.0, rel=0.01)
    assert found["GPU0 -> GPU4 write, all pairs at once"] == pytest.approx(2.7, rel=0.01)
    assert found["GPU1 -> GPU5 write, all pairs at once"] == pytest.approx(50, rel=0.01)


def test_pairs_that_do_not_reach_each_other_are_told_and_not_measured():
    result = peers(apart=["0-1"])
    assert result.facts["no peer access"] == "0-1"
    assert "GPU0 -> GPU1 write" not in values(result) and "GPU1 -> GPU0 write" in values(result)


def test_a_copy_that_hangs_is_named():
    slow = replace(known_probes()["peers"], limit_s=2)
    result = watchdog.run(slow, Subject(machine(), plan(), simulated={"hangs": ["2->3 read"]}))
    assert (result.status, result.reason) == ("hung", "killed after 2 s while GPU2 -> GPU3 read")
    assert "GPU1 -> GPU2 write" in values(result)


def test_bytes_that_do_not_arrive_are_a_problem():
    result = peers(loses=["0->1 write"])
    assert result.status == "failed" and "GPU0 -> GPU1 write: the bytes that arrived" in result.reason


def test_one_gpu_copies_within_itself():
    subject = Subject(machine(gpus=machine().gpus[:1]), None, patience=4, simulated={})
    assert set(values(watchdog.run(known_probes()["peers"], subject))) == {
        "GPU0 -> GPU0 write",
        "GPU0 -> GPU0 write, 4 KiB",
    }
