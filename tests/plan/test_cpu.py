import pytest

from appliance.documents import EngineReport, Gpu, MachineReport, ModelReport, NumaNode
from appliance.errors import InputError
from appliance.plan.cpu import plan_on_cpu
from appliance.plan.ports import SPAN, PortRange

MODEL = ModelReport(path="/models/demo", architecture="LlamaForCausalLM", parameters=1, weight_bytes=4)
ENGINE = EngineReport(version="0.5.23", python="3.11.7", packages={})


def machine(nodes: int = 1, cpus: str = "0-1", **changes) -> MachineReport:
    return MachineReport(cpus_allowed=cpus, numa_nodes=[NumaNode(id=n, cpus=cpus) for n in range(nodes)], **changes)


def plan(topology: str, on: MachineReport | None = None, engine: EngineReport = ENGINE):
    return plan_on_cpu(topology, MODEL, on or machine(), engine, served_name="demo")


def test_a_pair_has_a_worker_of_each_role_and_a_router():
    found = plan("pd")
    assert [(worker.name, worker.role) for worker in found.workers] == [("prefill", "prefill"), ("decode", "decode")]
    assert found.router is not None
    assert found.endpoint() == f"http://127.0.0.1:{found.router.port}"


def test_two_nodes_get_prefill_on_the_first_and_decode_on_the_last():
    assert [worker.numa_node for worker in plan("pd", machine(nodes=2)).workers] == [0, 1]


def test_one_node_holds_both():
    assert [worker.numa_node for worker in plan("pd").workers] == [0, 0]


def test_a_machine_that_shows_no_node_is_not_given_one():
    found = plan("pd", machine(nodes=0))
    assert [worker.numa_node for worker in found.workers] == [None, None]
    assert "no NUMA node: the machine shows none" in found.workers[0].reasons


def test_a_node_whose_cpus_may_not_be_used_holds_no_worker():
    nodes = [NumaNode(id=0, cpus="0-31"), NumaNode(id=1, cpus="32-63")]
    found = plan("pd", MachineReport(cpus_allowed="32-35", numa_nodes=nodes))
    assert [worker.numa_node for worker in found.workers] == [1, 1]


def test_a_node_without_cpus_holds_no_worker():
    nodes = [NumaNode(id=0, cpus=""), NumaNode(id=1, cpus="0-1")]
    found = plan("pd", MachineReport(cpus_allowed="0-1", numa_nodes=nodes))
    assert [worker.numa_node for worker in found.workers] == [1, 1]


def test_replicas_are_one_a_node():
    assert [worker.numa_node for worker in plan("replicas", machine(nodes=3)).workers] == [0, 1, 2]
    assert [worker.numa_node for worker in plan("replicas", machine(nodes=1)).workers] == [0, 0]


def test_a_single_worker_is_its_own_front_door():
    found = plan("single")
    assert found.router is None
    assert found.endpoint() == f"http://127.0.0.1:{found.workers[0].port}"


@pytest.mark.parametrize("topology", ["pd", "replicas", "single"])
def test_all_ports_lie_in_the_range_and_none_is_left_to_chance(topology):
    found = plan_on_cpu(topology, MODEL, machine(), ENGINE, "demo", PortRange(41000))
    assert all(41000 <= port < 41000 + SPAN for _, port in found.listeners())
    assert all(worker.nccl_port for worker in found.workers)


@pytest.mark.parametrize("topology", ["pd", "replicas", "single"])
def test_every_argument_and_variable_has_a_reason(topology):
    found = plan(topology)
    for holder in [*found.workers, *([found.router] if found.router else [])]:
        reasons = "\n".join(holder.reasons)
        for word in [*(w for w in holder.args if w.startswith("--")), *holder.env]:
            assert word in reasons


@pytest.mark.parametrize("cpus, threads", [("0-1", "1"), ("0-7", "2"), ("0-127", "8"), ("0", "1")])
def test_threads_are_shared_out(cpus, threads):
    assert plan("pd", machine(cpus=cpus)).workers[0].env["OMP_NUM_THREADS"] == threads


def test_a_machine_with_gpus_is_refused():
    with pytest.raises(InputError, match="this machine has 1 NVIDIA GPUs; expected none for a plan on CPUs"):
        plan("pd", machine(gpus=[Gpu(index=0)]))


def test_no_engine_no_plan():
    with pytest.raises(InputError, match="SGLang is not installed"):
        plan("pd", engine=EngineReport(version=None, python="3.11.7", packages={}))
