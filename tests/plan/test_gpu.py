import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.documents import EngineReport, Plan
from appliance.errors import ApplianceError, CheckFailed, InputError
from appliance.plan.costs import Wanted
from appliance.plan.gpu import Wishes, plan_on_gpus
from appliance.plan.ports import PortRange
from tests.helpers.gpu_machines import machine, rtx_machine, v4_flash
from tests.plan.test_groups import machines, uniform
from tests.plan.test_memory import dense

ENGINE = EngineReport(version="0.5.23", python="3.12.3", packages={})
V4 = v4_flash()


def plan(on, model=V4, engine=ENGINE, **wishes) -> Plan:
    return plan_on_gpus(on, model, engine, Wishes(**wishes))


def shape(found: Plan) -> list[tuple[str, list[int], int | None]]:
    return [(worker.name, worker.gpus, worker.numa_node) for worker in found.workers]


def test_the_reference_case():
    found = plan(rtx_machine())
    assert found.topology == "pd"
    assert shape(found) == [("prefill", [0, 1, 2, 3], 0), ("decode", [4, 5, 6, 7], 1)]
    assert found.rank_pairs() == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [worker.args for worker in found.workers] == [
        ["--enable-metrics", "--disaggregation-transfer-backend", "nixl"],
        ["--enable-metrics", "--disaggregation-transfer-backend", "nixl"],
    ]
    assert (
        found.workers[0].env
        == found.workers[1].env
        == {
            "HF_HUB_OFFLINE": "1",
            "SGLANG_AUTO_NUMA_BIND": "0",
            "SGLANG_HOST_IP": "127.0.0.1",
            "SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL": "2",
            "SGLANG_OPT_SM120_DIRECT_SWA_KV": "1",
            "UCX_NET_DEVICES": "lo",
            "NCCL_P2P_LEVEL": "PHB",
            "NCCL_MIN_NCHANNELS": "8",
            "NCCL_PROTO": "LL",
        }
    )
    assert {costed.topology: costed.fits for costed in found.topologies} == dict.fromkeys(
        ("pd", "replicas", "single"), True
    )
    assert [worker.tp_size for costed in found.topologies for worker in costed.workers] == [4, 4, 4, 4, 8]
    assert "KV cache 0->4, 1->5, 2->6, 3->7" in " ".join(found.reasons)


@pytest.mark.parametrize(
    "installed, model, wanted", [("0.1.0", V4, "on"), (None, V4, None), ("0.1.0", dense(60), None)]
)
def test_installed_kernels_must_be_active_where_they_serve_the_model(installed, model, wanted):
    engine = ENGINE.model_copy(update={"packages": {"appliance-kernels": installed}})
    found = plan(rtx_machine(), model=model, engine=engine)
    assert [worker.env.get("APPLIANCE_KERNELS") for worker in found.workers] == [wanted] * len(found.workers)


def test_a_plan_is_read_back_as_it_was_and_costs_are_no_part_of_its_identity():
    found = plan(rtx_machine())
    assert Plan.parse(found.to_json(), where="plan") == found
    assert found.model_copy(update={"topologies": [], "reasons": []}).identity() == found.identity()


@pytest.mark.parametrize("topology, workers", [("pd", 2), ("replicas", 2), ("single", 1)])
def test_each_topology_can_be_asked_for(topology, workers):
    found = plan(rtx_machine(), topology=topology)
    assert (found.topology, len(found.workers)) == (topology, workers)
    assert found.reasons[0] == f"topology {topology} was asked for"


def test_a_model_that_fits_only_once_is_served_by_one_worker_and_the_reasons_say_why():
    found = plan(rtx_machine(), model=dense(500))
    assert found.topology == "single"
    assert found.reasons[1].startswith("pd: prefill does not fit any useful context on 4 GPUs: each lacks")


def test_a_model_that_does_not_fit_at_all_is_refused_with_what_is_lacking():
    with pytest.raises(
        CheckFailed, match=r"no plan: pd: .* lacks .* GiB; .*; replicas: .*; single: .* lacks [0-9.]+ GiB"
    ):
        plan(rtx_machine(), model=dense(2000))


def test_a_topology_that_does_not_fit_is_refused_and_one_that_does_is_named():
    with pytest.raises(CheckFailed, match="no plan: pd: .*; single would fit"):
        plan(rtx_machine(), model=dense(500), topology="pd")


def test_of_seven_gpus_those_that_divide_the_heads_are_used_and_the_rest_is_named():
    found = plan(machine([0] * 3 + [1] * 4))
    assert shape(found) == [("prefill", [0, 1], 0), ("decode", [4, 5], 1)]
    assert any(reason.startswith("GPU 2, 3, 6 idle: ") for reason in found.reasons)


def test_one_gpu_serves_alone_and_a_pair_on_it_is_made_where_it_is_asked_for():
    small = dense(10)
    assert plan(machine([0]), model=small).topology == "single"
    pair = plan(machine([0]), model=small, topology="pd")
    assert pair.shared_gpus and shape(pair) == [("prefill", [0], 0), ("decode", [0], 0)]
    fractions = [worker.args[worker.args.index("--mem-fraction-static") + 1] for worker in pair.workers]
    assert fractions == ["0.4", "0.65"]
    with pytest.raises(CheckFailed, match="replicas: needs two GPUs"):
        plan(machine([0]), model=small, topology="replicas")


def test_all_gpus_on_one_node_are_parted_along_switches():
    kinds = uniform(4, "NODE")
    for a, b in ((0, 2), (1, 3)):
        kinds[a][b] = kinds[b][a] = "PIX"
    found = plan(machine([0] * 4, kinds), model=dense(60))
    assert shape(found) == [("prefill", [0, 2], 0), ("decode", [1, 3], 0)]


def test_without_numa_information_nothing_is_bound():
    found = plan(machine([None] * 8))
    assert shape(found) == [("prefill", [0, 1, 2, 3], None), ("decode", [4, 5, 6, 7], None)]
    assert "the machine tells no NUMA node, so CPUs and memory are not bound" in found.workers[0].reasons[0]


def test_a_worker_across_nodes_is_bound_to_none():
    found = plan(machine([3, 3, 1, 1, 7, 7, 5, 5], uniform(8, "NV12")))
    assert shape(found) == [("prefill", [2, 3, 0, 1], None), ("decode", [6, 7, 4, 5], None)]
    assert "on NUMA nodes 1, 3" in found.workers[0].reasons[0]


def test_nvlink_leaves_nccl_alone():
    found = plan(machine([0] * 4 + [1] * 4, uniform(8, "NV18")))
    assert not [name for name in found.workers[0].env if name.startswith("NCCL")]


def test_requests_at_once_are_asked_of_decode_alone_and_shared_out_by_replicas():
    per_gpu = plan(rtx_machine(), sizes=Wanted(context=131072)).topologies
    decode = next(worker for worker in per_gpu[0].workers if worker.name == "decode").memory.concurrency
    prefill = next(worker for worker in per_gpu[0].workers if worker.name == "prefill").memory.concurrency
    assert prefill < decode
    assert plan(rtx_machine(), sizes=Wanted(context=131072, concurrency=decode)).topology == "pd"
    more = plan(rtx_machine(), sizes=Wanted(context=131072, concurrency=decode + 1))
    assert more.topology == "replicas"


def test_context_and_concurrency_are_kept_or_refused():
    found = plan(rtx_machine(), sizes=Wanted(context=131072, concurrency=32))
    assert found.workers[0].args[1:3] == ["--context-length", "131072"]
    with pytest.raises(CheckFailed, match="requests of 131072 tokens at once, asked for 1000"):
        plan(rtx_machine(), sizes=Wanted(context=131072, concurrency=1000))
    with pytest.raises(InputError, match="--context 2000000: the model has 1048576 tokens"):
        plan(rtx_machine(), sizes=Wanted(context=2_000_000))
    many = plan(rtx_machine(), sizes=Wanted(concurrency=20))
    assert int(many.workers[0].args[2]) < 1048576


def test_drafting_is_alike_on_both_roles_and_needs_an_mtp_layer():
    found = plan(rtx_machine(), draft_tokens=3)
    for worker in found.workers:
        assert worker.args[worker.args.index("--speculative-num-draft-tokens") + 1] == "4"
    with pytest.raises(InputError, match="--mtp: no MTP layer in this checkpoint"):
        plan(rtx_machine(), model=dense(10), draft_tokens=3)


def test_an_engine_that_is_not_installed_is_refused():
    with pytest.raises(InputError, match="SGLang is not installed"):
        plan_on_gpus(rtx_machine(), V4, EngineReport(version=None, python="3", packages={}), Wishes())


@settings(max_examples=300, deadline=None)
@given(
    machines(),
    st.sampled_from([dense(1), dense(60), dense(300), V4]),
    st.sampled_from([None, "pd", "replicas", "single"]),
)
def test_whatever_the_machine_a_plan_holds_together_or_is_refused_in_one_line(on, model, topology):
    try:
        found = plan(on, model=model, topology=topology, ports=PortRange(41000))
    except ApplianceError as error:
        assert "\n" not in str(error)
        return
    used = [gpu for worker in found.workers for gpu in worker.gpus]
    assert found.shared_gpus or len(set(used)) == len(used)
    assert set(used) <= {gpu.index for gpu in on.gpus}
    assert len({len(worker.gpus) for worker in found.workers}) == 1
    assert all(len(worker.gpus) == worker.tp_size for worker in found.workers)
    assert all(41000 <= port < 41040 for _, port in found.listeners())
    nodes = {gpu.index: gpu.numa_node for gpu in on.gpus}
    for worker in found.workers:
        if worker.numa_node is not None:
            assert {nodes[gpu] for gpu in worker.gpus} <= {worker.numa_node, None}
