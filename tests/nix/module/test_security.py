"""The scores in docs/nixos.md are those that systemd gives the units."""

import re
from pathlib import Path

from tests.helpers.nix_module import PROJECT, evaluate, example, in_nix_environment

ROW = re.compile(r"^\| (sglang-\S+\.service) \| ([0-9.]+) \|$", re.MULTILINE)


def score(unit: Path) -> str:
    """Exposure of a unit file, by systemd-analyze without a running systemd."""
    plain = ["env", "SYSTEMD_COLORS=0", "SYSTEMD_URLIFY=0"]
    done = in_nix_environment(*plain, "systemd-analyze", "security", "--offline=true", unit)
    return re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)[1]


def test_the_scores_in_the_docs_are_the_units_own(tmp_path):
    stated = dict(ROW.findall((PROJECT / "docs/nixos.md").read_text()))
    units = evaluate(example("pd-8-gpus"), "units")
    assert set(stated) == {name for name in units if name.endswith(".service")}
    for name in stated:
        (tmp_path / name).write_text(units[name])
    assert {name: score(tmp_path / name) for name in stated} == stated
