"""The probes that need no GPU, for real on this machine."""

import os
import socket

import pytest

from appliance.preflight.measure import known_probes
from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import Subject
from appliance.recon.engine import installed
from appliance.recon.machine import machine_report
from tests.helpers.leftovers import Leftovers

PATIENCE = 6
"""Other tests load the machine: only hanging is told from working here, not slow from fast."""


@pytest.fixture(scope="module")
def here():
    """This machine, as the probes look at it."""
    return machine_report().model_copy(update={"gpus": []})


@pytest.fixture(autouse=True)
def leaves_the_machine_as_it_was(tmp_path):
    segments = {name for name in os.listdir("/dev/shm") if name.startswith("appliance-")}
    yield
    assert {name for name in os.listdir("/dev/shm") if name.startswith("appliance-")} == segments


def measure(name: str, subject: Subject):
    result = watchdog.run(known_probes()[name], subject)
    assert result.status == "measured", result
    assert result.device == "cpu"
    return {measure.name: measure.value for measure in result.measures}, result.facts


def test_limits_add_up_to_less_than_ninety_seconds():
    assert sum(probe.limit_s for probe in known_probes().values()) < 90


def test_every_port_of_a_plan_is_bound_at_once(here, make_plan):
    plan = make_plan("pd")
    values, facts = measure("ports", Subject(here, plan, patience=PATIENCE))
    assert values == {"ports bound": 8, "ports refused": 0} and facts == {}


def test_a_port_that_somebody_holds_is_refused_by_name(here, make_plan):
    plan = make_plan("pd")
    with socket.socket() as held:
        held.bind(("127.0.0.1", plan.workers[0].port))
        held.listen()
        values, facts = measure("ports", Subject(here, plan, patience=PATIENCE))
    assert values == {"ports bound": 7, "ports refused": 1}
    assert f"(pid {os.getpid()})" in facts[f"refused {plan.workers[0].port} (prefill.port)"]


def test_the_checkpoint_is_read_past_the_page_cache(here, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(os.urandom(40 * 2**20))
    values, facts = measure("disk", Subject(here, model_path=str(tmp_path), patience=PATIENCE))
    assert values["sequential read, 1 streams"] > 1 and values["sequential read, 8 streams"] > 1
    assert facts["checkpoint"] == f"1 files, {40 * 2**20} bytes"
    assert facts["page cache"].startswith(("passed by", "dropped first"))


def test_a_folder_without_weights_is_no_checkpoint(here, tmp_path):
    result = watchdog.run(known_probes()["disk"], Subject(here, model_path=str(tmp_path), patience=PATIENCE))
    assert result.status == "failed" and "no weight file" in result.reason


def test_memory_of_every_node_is_copied_from_every_node(here):
    values, _ = measure("memory", Subject(here, patience=PATIENCE))
    nodes = [node.id for node in here.numa_nodes if node.cpus]
    assert set(values) == {f"CPUs of node {a}, memory of node {b}" for a in nodes for b in nodes}
    assert all(rate > 0.1 for rate in values.values())


@pytest.mark.skipif(installed("nixl") is None, reason="nixl is not installed")
def test_nixl_writes_and_reads_between_two_processes(here, make_plan):
    values, facts = measure("nixl-dram", Subject(here, make_plan("pd"), patience=PATIENCE))
    assert values["DRAM WRITE"] > 0.01 and values["DRAM READ"] > 0.01
    assert facts["backend"] == "UCX"
    assert facts["WRITE is carried by"] and facts["READ is carried by"]


def test_two_plain_processes_share_memory(here, make_plan):
    values, facts = measure("sandbox", Subject(here, make_plan("pd"), patience=PATIENCE))
    assert values["shared memory"] == 1
    assert "process_vm_readv" in values and "CUDA IPC" not in values
    assert facts["sandbox"].startswith("none: ")


def test_probes_of_gpus_do_not_apply_here(here, make_plan):
    subject = Subject(here, make_plan("pd"))
    for name in ("libcuda", "nixl-vram", "peers", "all-reduce"):
        assert watchdog.run(known_probes()[name], subject).status == "does not apply"


def test_nothing_is_left_of_them(here, make_plan, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    leftovers = Leftovers(tmp_path, tmp_path)
    for name in ("memory", "sandbox", "nixl-dram"):
        watchdog.run(known_probes()[name], Subject(here, make_plan("pd"), patience=PATIENCE))
    assert not leftovers.found()
