"""The project's own derivations, really built in the sandbox: twice, in a second store too, compared bit for bit."""

import json

from tests.helpers.nix_environment import PROJECT, in_nix_environment
from tests.pkgs.conftest import verify_rebuild

EXPECTED = {"appliance", "appliance-environment", "cuda-compiler", "kernels"}


def test_every_part_is_the_same_bits_again(rebuilt):
    assert {part["name"] for part in rebuilt["parts"]} >= EXPECTED
    assert [part["name"] for part in rebuilt["parts"] if not part["repeats"]] == []


def test_every_part_is_the_same_bits_in_a_second_store(rebuilt):
    assert [part["name"] for part in rebuilt["parts"] if part["second_store"] is not True] == []


def test_what_has_the_recorded_inputs_has_the_recorded_bits(rebuilt):
    differ = [part["name"] for part in rebuilt["parts"] if part["record"] not in ("same", "other inputs")]
    assert differ == []


def test_wheels_stand_on_the_second_rung_and_own_packages_on_the_third(rebuilt):
    rungs = {part["name"]: part["rung"] for part in rebuilt["parts"]}
    assert rungs["wheels.psutil"] == 2
    assert {rungs[name] for name in EXPECTED} == {3}


def test_an_unstable_derivation_is_named_with_what_differs():
    in_nix_environment("nix", "--version")
    file = PROJECT / "tests/pkgs/unstable.nix"
    done = verify_rebuild("--file", file, "unstable", "--no-second-store")
    assert done.returncode == 1
    [part] = json.loads(done.stdout)["parts"]
    assert not part["repeats"]
    assert any("lib/changes" in line for line in part["differences"])
    assert not any("same" in line for line in part["differences"])


def test_bits_that_do_not_repeat_are_not_recorded(tmp_path):
    in_nix_environment("nix", "--version")
    file = PROJECT / "tests/pkgs/unstable.nix"
    record = tmp_path / "record.json"
    done = verify_rebuild("--file", file, "unstable", "--no-second-store", "--update", "--record", record)
    assert done.returncode == 1
    assert not record.exists()
