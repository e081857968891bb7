import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.bench.profile import trace as reader
from appliance.bench.profile.trace import profiles
from appliance.documents import TraceProfile
from appliance.errors import InputError
from tests.helpers.traces import ALL_REDUCE, GEMM, SPARSE_DECODE, UNKNOWN, decode_step, kernel, trace, write_trace

SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6))
ANY = SCALAR | st.lists(st.integers(), max_size=4)
FIELDS = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
ARGS = ["device", "correlation", "grid", "block", "registers per thread", "shared memory", "bytes"]


@pytest.fixture
def step(tmp_path) -> TraceProfile:
    (found,) = profiles(write_trace(tmp_path / "step.trace.json.gz", trace(decode_step())))
    return found


def test_kernels_are_named_by_time_with_class_and_share(step):
    assert [(one.name, one.kernel_class, one.share) for one in step.kernels] == [
        (SPARSE_DECODE, "attention", 0.6),
        (GEMM, "GEMM", 0.2),
        (ALL_REDUCE, "communication", 0.1),
        (UNKNOWN, "other", 0.05),
    ]
    assert step.communication_share == 0.1
    assert sum(one.share for one in step.classes) == pytest.approx(1)
    assert step.simulated and step.rank == 2 and step.steps[0].name == "step[DECODE bs=4]"


def test_sixty_four_blocks_on_188_sms_leave_the_gpu_empty(step):
    empty = step.empty_gpu()
    assert [one.name for one in empty] == [SPARSE_DECODE, ALL_REDUCE]
    # 12.0 holds 1536 threads an SM: of 128 threads with 64 registers 8 blocks by registers, 12 by threads
    assert (empty[0].blocks, empty[0].blocks_per_sm) == (64, 8)
    assert empty[0].waves == pytest.approx(64 / (8 * 188), abs=1e-3)
    assert empty[0].occupancy == pytest.approx(8 * 128 / 1536)


def test_a_kernel_that_takes_next_to_no_time_is_not_worth_naming(tmp_path):
    events = [kernel(GEMM, 0.0, 1000.0, 1), kernel(UNKNOWN, 1000.0, 1.0, 2, blocks=1)]
    (found,) = profiles(write_trace(tmp_path / "t.json", trace(events)))
    assert found.empty_gpu() == []


def test_without_the_gpu_nothing_is_said_of_its_sms(tmp_path):
    (found,) = profiles(write_trace(tmp_path / "t.json", trace(decode_step(), deviceProperties=[])))
    assert found.gpu is None and found.empty_gpu() == [] and found.kernels[0].waves is None


def test_gaps_are_told_apart_by_what_they_waited_for(step):
    gaps = step.gaps
    # 160-180: launch returned at 180; 200-205: launched at 100; 220-230: the copy's launch is not in the trace
    assert (gaps.count, gaps.total_us, gaps.longest_us) == (3, 35.0, 20.0)
    assert (gaps.launch_us, gaps.queued_us, gaps.unknown_us) == (20.0, 5.0, 10.0)
    assert (step.wall_us, step.busy_us) == (135.0, 100.0)
    assert gaps.launch_share == pytest.approx(20 / 135)


def test_copies_are_counted_with_their_bytes(step):
    (copy,) = step.copies
    assert (copy.count, copy.total_us, copy.bytes) == (1, 5.0, 4096)


def test_kernels_at_once_on_two_streams_are_no_gap(tmp_path):
    events = [kernel(GEMM, 0.0, 100.0, 1), kernel(UNKNOWN, 10.0, 20.0, 2), kernel(UNKNOWN, 50.0, 10.0, 3)]
    (found,) = profiles(write_trace(tmp_path / "t.json", trace(events)))
    assert found.gaps.count == 0 and found.busy_us == found.wall_us == 100.0


def test_each_gpu_of_a_merged_trace_is_its_own(tmp_path):
    events = [kernel(GEMM, 0.0, 10.0, 1), kernel(GEMM, 0.0, 30.0, 2, device=3)]
    found = profiles(write_trace(tmp_path / "t.json", trace(events)))
    assert [(one.device, one.wall_us) for one in found] == [(0, 10.0), (3, 30.0)]


def test_without_a_kernel_operators_count_by_their_own_time(tmp_path):
    def operator(name: str, ts: float, dur: float) -> dict:
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}

    linear, mm = operator("aten::linear", 0.0, 100.0), operator("aten::mm", 10.0, 60.0)
    events = [linear, mm, operator("aten::add", 150.0, 10.0)]
    (found,) = profiles(write_trace(tmp_path / "t.json", trace(events, deviceProperties=[])))
    assert found.counts == "operators" and found.gaps is None and found.gpu is None
    assert [(one.name, one.total_us) for one in found.kernels] == [
        ("aten::mm", 60.0), ("aten::linear", 40.0), ("aten::add", 10.0),
    ]  # fmt: skip
    assert (found.wall_us, found.busy_us) == (160.0, 110.0)


def test_a_trace_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="no kernel and no operator"):
        profiles(write_trace(tmp_path / "t.json", trace([{"ph": "M", "name": "x"}])))


def test_more_events_than_memory_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST_EVENTS", 3)
    with pytest.raises(InputError, match="more than 3 kernels; expected a few decode steps"):
        profiles(write_trace(tmp_path / "t.json", trace(decode_step())))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(FIELDS), ANY), st.dictionaries(st.sampled_from(ARGS), ANY), ANY)
def test_odd_fields_of_an_event_are_passed_over(tmp_path, fields, args, properties):
    odd = kernel(GEMM, 0.0, 1.0, 1)
    odd["args"] |= args
    odd |= fields
    members = {"deviceProperties": properties, "distributedInfo": properties}
    path = write_trace(tmp_path / "t.json", trace([*decode_step(), odd], **members))
    found = profiles(path)
    assert sum(one.count for profile in found for one in profile.kernels) >= 4
