import pytest

from appliance.bench.figures import figures_of
from appliance.bench.serve.limits import limits, per_gpu, roles
from appliance.documents import Figure, Workload
from tests.helpers.bench_records import plan, simulated_record
from tests.helpers.gpu_machines import rtx_machine, v4_flash

WORKLOAD = Workload(name="plain", input_tokens=8192, output_tokens=256, concurrency=16, requests=64)


def figures(topology: str):
    record = simulated_record(topologies=(topology,))
    cell = next(c for c in record.cells if c.workload.key() == WORKLOAD.key())
    return figures_of(cell.repetitions)


def test_decode_prefill_and_transfer_have_limits_where_gpus_and_model_are_known():
    found = {share.of: share for share in limits(plan("pd"), WORKLOAD, figures("pd"), v4_flash(), rtx_machine())}
    assert found.keys() == {"decode", "prefill", "KV transfer"}
    for share in found.values():
        assert share.share == pytest.approx(share.measured / share.limit, rel=0.01)


def test_more_requests_in_flight_raise_the_limit_of_decode_but_less_than_in_proportion():
    def limit(concurrency: int) -> float:
        workload = WORKLOAD.model_copy(update={"concurrency": concurrency})
        shares = limits(plan("single"), workload, figures("single"), v4_flash(), rtx_machine())
        return next(share.limit for share in shares if share.of == "decode")

    assert limit(16) < limit(32) < 2 * limit(16)


def test_without_gpus_nothing_is_said():
    on_cpu = plan("single").model_copy(
        update={"workers": [plan("single").workers[0].model_copy(update={"gpus": [], "tp_size": 1})]}
    )
    assert limits(on_cpu, WORKLOAD, figures("single"), v4_flash(), rtx_machine()) == []


def test_a_role_is_measured_by_its_own_gpus():
    found = {role.role: role for role in roles(plan("pd"), figures("pd"))}
    measured = figures("pd")
    assert found["prefill"].gpus == found["decode"].gpus == 4
    assert found["prefill"].input_tokens_per_s_per_gpu == pytest.approx(measured["computed tok/s"].median / 4, abs=0.01)
    assert found["prefill"].output_tokens_per_s_per_gpu is None
    assert found["decode"].output_tokens_per_s_per_gpu == pytest.approx(measured["output tok/s"].median / 4, abs=0.01)


def test_a_topology_is_measured_by_all_its_gpus():
    assert per_gpu(plan("pd"), figures("pd")) == pytest.approx(figures("pd")["output tok/s"].median / 8, abs=0.01)


def test_what_a_prefix_cache_gave_is_no_work_of_prefill():
    cell = simulated_record(topologies=("single",)).cells[0]
    half = [each.model_copy(update={"cached_tokens": each.input_tokens // 2}) for each in cell.repetitions]
    (whole,), (rest,) = (roles(plan("single"), figures_of(each)) for each in (cell.repetitions, half))
    assert rest.input_tokens_per_s_per_gpu == pytest.approx(whole.input_tokens_per_s_per_gpu / 2, rel=1e-3)


def test_speculation_raises_the_limit_of_decode_by_what_is_accepted():
    def decode(measured) -> float:
        shares = limits(plan("single"), WORKLOAD, measured, v4_flash(), rtx_machine())
        return next(share.limit for share in shares if share.of == "decode")

    measured = figures("single")
    accepted = Figure(median=2.5, least=2.5, most=2.5)
    assert decode(measured | {"acceptance length": accepted}) == pytest.approx(2.5 * decode(measured), rel=1e-3)
