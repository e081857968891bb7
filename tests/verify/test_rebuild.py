import json

import pytest

from appliance.documents import RebuildRecord, RebuildReport, RebuiltPart, RecordedPart
from appliance.verify.nix import Built
from appliance.verify.rebuild import against, as_record, rung
from tests.helpers.cli import appliance, refused

BUILT = Built(derivation="/nix/store/a.drv", path="/nix/store/a", nar_hash="sha256-1", nar_size=1)


def recorded(**changes) -> RecordedPart:
    return RecordedPart(**({"derivation": BUILT.derivation, "nar_hash": BUILT.nar_hash} | changes))


@pytest.mark.parametrize(
    "record, said",
    [
        (None, "none"),
        (recorded(), "same"),
        (recorded(derivation="/nix/store/b.drv"), "same"),
        (recorded(nar_hash="sha256-2"), "differs"),
        (recorded(derivation="/nix/store/b.drv", nar_hash="sha256-2"), "other inputs"),
    ],
)
def test_equal_inputs_must_give_the_recorded_bits(record, said):
    assert against(record, BUILT) == said


@pytest.mark.parametrize(
    "changes, holds",
    [
        ({}, True),
        ({"second_store": None}, True),
        ({"record": "other inputs"}, True),
        ({"repeats": False}, False),
        ({"second_store": False}, False),
        ({"record": "differs"}, False),
    ],
)
def test_a_part_holds_if_nothing_differs(changes, holds):
    part = rebuilt_part(**changes)
    assert part.holds() is holds
    assert RebuildReport(date="d", nix="n", parts=[rebuilt_part(), part]).holds() is holds


def rebuilt_part(**changes) -> RebuiltPart:
    data = {"name": "x", "rung": 3, "repeats": True, "second_store": True, "record": "same"} | BUILT._asdict()
    return RebuiltPart(**(data | changes))


def test_a_report_becomes_the_next_record():
    record = as_record(RebuildReport(date="d", nix="n", parts=[rebuilt_part()]))
    assert record.parts == {"x": recorded()}


def test_wheels_are_never_said_to_be_built_from_source():
    assert [rung(name) for name in ("wheels.torch", "kernels", "appliance")] == [2, 3, 3]


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "record.json"
    RebuildRecord(date="d", parts={"x": recorded()}).write(path)
    return path


def test_without_a_record_there_is_nothing_to_compare(tmp_path):
    line = refused("verify", "rebuild", "--record", tmp_path / "none.json")
    assert "none.json: no such file" in line


def test_without_nix_it_says_what_was_expected(record):
    line = refused("verify", "rebuild", "--record", record, env={"PATH": "/nowhere"})
    assert line == "nix: cannot be run (No such file or directory); expected nix 2.24 or newer"


def test_a_failing_nix_is_a_probe_that_could_not_complete(record, tmp_path):
    nix = tmp_path / "nix"
    says = '[ "$1" = --version ] && exec echo nix; echo noise >&2; echo "error: no such attribute" >&2; exit 1'
    nix.write_text(f"#!/bin/sh\n{says}\n")
    nix.chmod(0o755)
    done = appliance("verify", "rebuild", "--record", record, "--json", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == "error: nix build: error: no such attribute"


def test_a_record_is_not_written_by_a_run_that_failed(tmp_path):
    target = tmp_path / "new.json"
    done = appliance("verify", "rebuild", "x", "--update", "--record", target, env={"PATH": "/nowhere"})
    assert done.returncode == 2
    assert not target.exists()


def test_words_that_no_shell_reads_are_refused(record):
    line = refused("verify", "rebuild", "--record", record, "--within", "un'balanced")
    assert line == '--within "un\'balanced": No closing quotation; expected words as a shell reads them'


def test_a_nix_file_that_is_not_there_is_refused():
    done = appliance("verify", "rebuild", "--file", "/nowhere/packages.nix")
    assert done.returncode == 2
    assert "'/nowhere/packages.nix' does not exist" in done.stderr


def test_argstr_without_a_file_is_refused():
    done = appliance("verify", "rebuild", "--argstr", "a", "b")
    assert done.returncode == 2
    assert "--argstr goes with --file" in done.stderr


def test_documents_survive_json():
    report = RebuildReport(date="d", nix="n", parts=[rebuilt_part(differences=["a: b"])])
    assert RebuildReport.parse(report.to_json(), where="x") == report
    assert json.loads(report.to_json())["kind"] == "RebuildReport"
