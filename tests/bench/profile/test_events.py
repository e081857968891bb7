import gzip
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from appliance.bench.profile import events
from appliance.bench.profile.events import read
from appliance.errors import InputError
from tests.helpers.traces import decode_step, trace, write_trace

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = st.dictionaries(st.text(max_size=8).filter(lambda name: name != "traceEvents"), VALUES, max_size=4)
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)


@pytest.fixture(autouse=True)
def few_characters_at_once(monkeypatch):
    monkeypatch.setattr(events, "CHUNK", 7)


def message(path) -> str:
    with pytest.raises(InputError) as error:
        list(read(path))
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


@SAME_FOLDER
@given(MEMBERS, st.lists(VALUES, max_size=6), st.sampled_from([None, 1]), st.sampled_from([".json", ".json.gz"]))
def test_every_value_comes_as_it_was_written(tmp_path, members, written, indent, suffix):
    path = tmp_path / f"trace{suffix}"
    text = json.dumps(members | {"traceEvents": written}, indent=indent).encode()
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    found = list(read(path))
    assert [value for name, value in found if name == "traceEvents"] == written
    assert {name: value for name, value in found if name != "traceEvents"} == members


@SAME_FOLDER
@given(st.data(), st.sampled_from([".json", ".json.gz"]))
def test_a_trace_that_is_cut_short_is_refused_wherever_it_was_cut(tmp_path, data, suffix):
    path = write_trace(tmp_path / f"trace{suffix}", trace(decode_step()))
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(2, len(whole) - 1))])
    assert "cut short" in message(path)


@SAME_FOLDER
@given(st.binary(max_size=60))
@example(b"\x1f\x8b")
@example(b"\x1f\x8b\x08\x00garbage in place of a stream")
@example(b"[" * 60)
@example(b'{"traceEvents": [1 2]}')
@example(b'{"traceEvents": {}}')
@example(b"\xff\xfe")
def test_whatever_the_bytes_are_it_is_a_trace_or_one_line(tmp_path, data):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    try:
        list(read(path))
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{}", "no traceEvents in it"),
        ('{"kind": "Plan"}', "no traceEvents in it"),
        ("7", "found '7'"),
        ('{"traceEvents": [{"ph": }]}', "not JSON"),
        ('{"traceEvents": [' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "]}", "not JSON"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path, text, expected):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert expected in message(path) and "expected a trace as torch.profiler writes it" in message(path)


def test_a_bare_list_of_events_is_a_trace_too(tmp_path):
    found = read(write_trace(tmp_path / "x.json", [1, {"a": 2}]))
    assert list(found) == [("traceEvents", 1), ("traceEvents", {"a": 2})]


def test_a_value_without_an_end_does_not_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "LONGEST", 1000)
    path = tmp_path / "x.json"
    path.write_text('{"traceEvents": ["' + "x" * 100_000 + '"]}')
    assert "a value of more than" in message(path)


def test_a_long_trace_is_read_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "CHUNK", 1 << 16)
    path = tmp_path / "long.json.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents": [')
        for index in range(60_000):
            file.write(json.dumps({"ph": "X", "name": "k" * 200, "ts": index}) + ",")
        file.write("0]}")
    tracemalloc.start()
    count = sum(1 for _ in read(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 60_001 and most < 2_000_000  # of 14 MB of text
