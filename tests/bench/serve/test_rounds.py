from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.bench.serve.rounds import seed_of, turns
from appliance.bench.serve.run import with_repetition
from appliance.documents import Asked
from tests.helpers.bench_records import repetition, simulated_record


def unmeasured(repetitions: int, rounds: int):
    whole = simulated_record()
    asked = whole.asked.model_copy(update={"repetitions": repetitions, "rounds": rounds})
    return whole.model_copy(update={"cells": [], "asked": asked, "complete": False, "order": []})


def test_topologies_take_turns_and_every_other_round_goes_backwards():
    order = [turn.topology for turn in turns(unmeasured(3, 3))]
    assert order == ["pd", "replicas", "single", "single", "replicas", "pd", "pd", "replicas", "single"]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(1, 6))
def test_every_repetition_of_every_cell_is_measured_once(repetitions, rounds):
    record = unmeasured(repetitions, min(rounds, repetitions))
    measured = [(turn.topology, workload.key(), n) for turn in turns(record) for workload, n in turn.cells]
    assert len(measured) == len(set(measured)) == 3 * repetitions * len(record.asked.workloads)


def test_a_run_that_is_resumed_measures_what_is_left():
    import random

    record = unmeasured(2, 1)
    first = record.asked.workloads[0]
    for _ in range(2):
        record, _ = with_repetition(record, "pd", first, repetition("pd", first, random.Random(1)))
    left = [(turn.topology, workload.key(), n) for turn in turns(record) for workload, n in turn.cells]
    assert ("pd", first.key(), 0) not in left and ("pd", first.key(), 1) not in left
    assert ("single", first.key(), 0) in left
    assert len(left) == 3 * 2 * len(record.asked.workloads) - 2


def test_all_topologies_are_asked_the_same_prompts_and_no_two_cells_are():
    record = unmeasured(3, 3)
    seeds = [seed_of(record, workload, n) for workload in record.asked.workloads for n in range(3)]
    assert len(set(seeds)) == len(seeds)


def test_what_is_asked_is_the_same_document_when_read_back():
    asked = simulated_record().asked
    assert Asked.model_validate_json(asked.model_dump_json()) == asked
