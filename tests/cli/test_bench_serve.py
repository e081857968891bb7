import json

import pytest

from tests.helpers.bench_records import simulated_record
from tests.helpers.cli import appliance


@pytest.mark.parametrize(
    "options, words",
    [
        ([], "no model to measure with; expected --model REF or --plan PLAN"),
        (["--concurrency", "1", "--request-rate", "2"], "--concurrency and --request-rate are two kinds of load"),
        (["--slo-ttft", "100"], "--slo-ttft and --slo-tpot make one objective"),
        (["--rounds", "4"], "--rounds 4: expected at most the 3 repetitions"),
        (["--mix", "none", "--mix", "multi-turn"], "--mix none: expected no other --mix beside it"),
        (["--model", "/no/such/folder"], "/no/such/folder"),
        (["--plan", "/no/plan", "--topology", "pd"], "--plan says the topology"),
        (["--resume", "/no/record"], "/no/record: no such file; expected a BenchRecord document"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(options, words, tmp_path):
    done = appliance("bench", "serve", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split()) and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "bench.json").write_text("precious")
    done = appliance("bench", "serve", "--model", "x", cwd=tmp_path)
    assert done.returncode == 2 and "exists; expected a new file" in done.stderr
    assert (tmp_path / "bench.json").read_text() == "precious"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--model", "/another/model"], "--model /another/model: the record is of "),
        (["--topology", "pd"], "--topology pd: the record is of pd, replicas, single; expected the same"),
        (["--plan", "plan.json"], "--resume goes on with the record's own plans"),
        (["--output", "other.json"], "--resume goes on in its own file"),
    ],
)
def test_a_run_is_resumed_as_it_was_asked_for(options, words, tmp_path):
    place = tmp_path / "record.json"
    simulated_record().write(place)
    before = place.read_text()
    done = appliance("bench", "serve", "--resume", place, *options, cwd=tmp_path)
    assert done.returncode == 2 and words in " ".join(done.stderr.split())
    assert place.read_text() == before


@pytest.fixture
def records(tmp_path):
    fast, slow = tmp_path / "fast.json", tmp_path / "slow.json"
    simulated_record(seed=1, repetitions=5).write(fast)
    simulated_record(seed=2, repetitions=5, slower=1.3).write(slow)
    return fast, slow


def test_a_regression_is_exit_code_1_and_says_what(records):
    fast, slow = records
    done = appliance("bench", "compare", fast, slow)
    assert done.returncode == 1
    assert "REGRESSION" in done.stdout and "Welch" in done.stdout
    assert done.stdout.startswith("before: SIMULATED, ")
    assert appliance("bench", "compare", slow, fast).returncode == 0


def test_compared_as_a_document(records):
    found = json.loads(appliance("bench", "compare", *records, "--json").stdout)
    assert found["kind"] == "Comparison" and found["unlike"] == [] and found["simulated"]
    both = appliance("bench", "compare", *records, records[0], "--json")
    assert both.returncode == 2 and "expected one RECORD beside BASE" in both.stderr


def test_a_file_of_another_kind_is_refused(records, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"kind": "Plan"}')
    done = appliance("bench", "compare", records[0], other)
    assert done.returncode == 2 and "kind is 'Plan'; expected 'BenchRecord'" in done.stderr


def test_a_report_is_one_file_and_its_pictures_are_others(records, tmp_path):
    done = appliance("bench", "report", *records, "--output", tmp_path / "r.html", "--svg", tmp_path / "svg")
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in (tmp_path / "r.html").read_text()
    assert len(list((tmp_path / "svg").glob("run-[12]-*.svg"))) == 14


@pytest.mark.parametrize(
    "text, words",
    [("{", "not JSON"), ('{"kind": "Plan"}', "kind is 'Plan'; expected BenchRecord"), ("[]", "kind is None; expected")],
)
def test_what_is_no_record_is_refused_and_nothing_is_written(text, words, tmp_path):
    (tmp_path / "other.json").write_text(text)
    done = appliance("bench", "report", tmp_path / "other.json", "--output", tmp_path / "r.html")
    assert done.returncode == 2 and words in done.stderr
    assert not (tmp_path / "r.html").exists()
