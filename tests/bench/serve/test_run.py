import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from appliance.bench.serve.rounds import Turn
from appliance.bench.serve.run import Clock, cell_of, require_same, tokens, warming
from appliance.documents import BenchRecord, Workload
from appliance.errors import InputError
from tests.helpers.bench_records import repetition, simulated_record

SHORT = Workload(name="plain", input_tokens=100, output_tokens=100, concurrency=1, requests=1)
LONG = SHORT.model_copy(update={"input_tokens": 900})


def test_the_time_left_is_by_workload_and_for_new_ones_by_tokens():
    clock = Clock([Turn("pd", [(SHORT, 0), (LONG, 0)]), Turn("single", [(SHORT, 0), (LONG, 0)])])
    assert clock.words() == ", 4 repetitions left"
    clock.done(SHORT, 60.0)
    assert tokens(LONG) == 5 * tokens(SHORT)
    assert clock.seconds_left() == 300.0 + 60.0 + 300.0
    clock.done(LONG, 120.0)
    assert clock.words() == ", 2 repetitions left, about 3 min and starts"


def test_each_input_length_and_grammars_are_warmed_at_the_highest_load_with_short_answers():
    high = SHORT.model_copy(update={"concurrency": 8, "requests": 32})
    bound = SHORT.model_copy(update={"name": "structured output"})
    behind = SHORT.model_copy(update={"name": "tail isolation", "long_input_tokens": 900})
    warmed = warming(Turn("pd", [(SHORT, 0), (high, 0), (LONG, 0), (behind, 0), (bound, 0)])).values()
    assert [(one.name, one.input_tokens, one.concurrency, one.requests, one.output_tokens) for one in warmed] == [
        ("plain", 100, 8, 8, 8),
        ("plain", 900, 1, 1, 8),
        ("structured output", 100, 1, 1, 8),
    ]


def test_a_cell_states_what_came_from_a_cache():
    record = simulated_record(topologies=("single",))
    measured = repetition("single", SHORT, random.Random(1))
    assert cell_of(record, "single", SHORT, [measured]).remarks == []
    cached = measured.model_copy(update={"cached_tokens": measured.input_tokens // 2})
    assert cell_of(record, "single", SHORT, [cached]).remarks == ["50% of the prompt tokens came from a prefix cache"]


def changed(record: BenchRecord, part: str, **changes) -> BenchRecord:
    return record.model_copy(update={part: getattr(record, part).model_copy(update=changes)})


@pytest.mark.parametrize(
    "part, changes, words",
    [
        ("asked", {"repetitions": 7}, "what was asked for"),
        ("asked", {"seed": 7}, "what was asked for"),
        ("stamp", {"closure": "1" * 64}, "closure"),
        ("stamp", {"driver": "590.1"}, "driver"),
        ("machine", {"hostname": "elsewhere"}, "machine"),
    ],
)
def test_another_run_is_not_resumed(part, changes, words):
    record = simulated_record()
    require_same(record, simulated_record())
    with pytest.raises(InputError, match=f"--resume: {words} differ"):
        require_same(record, changed(record, part, **changes))


TEXT = simulated_record(topologies=("single",)).to_json()


@settings(deadline=None, max_examples=60)
@example(TEXT.index('"max_restarts"') + 1, "")  # a field of a part that stands in a map
@given(st.integers(0, len(TEXT) - 1), st.text(max_size=4))
def test_a_damaged_record_is_one_line_or_still_a_record(place, put):
    """A record whose text was changed anywhere, as by a disk or an editor."""
    try:
        found = BenchRecord.parse(TEXT[:place] + put + TEXT[place + 1 :], where="bench.json")
    except InputError as error:
        assert str(error).startswith("bench.json: ") and "\n" not in str(error)
    else:
        assert BenchRecord.parse(found.to_json(), where="again") == found


@settings(deadline=None, max_examples=30)
@given(st.integers(0, len(TEXT) - 2))
def test_half_a_record_is_refused(length):
    with pytest.raises(InputError, match="bench.json: "):
        BenchRecord.parse(TEXT[:length], where="bench.json")
