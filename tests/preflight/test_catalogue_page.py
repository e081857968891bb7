"""The page that says which fault is caught where names every rule, no other, and files that exist."""

import re
from pathlib import Path

from appliance.preflight.catalogue import catalogue

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/preflight-catalogue.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)


def test_every_rule_is_on_the_page_and_no_other():
    named = set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", PAGE))
    assert named == catalogue().keys()


def test_all_faults_are_there_and_those_that_are_not_caught_say_why():
    assert [int(number) for number, _ in ROWS] == list(range(1, 85))
    caught = [where for _, where in ROWS[:70] if not where.startswith("not")]
    assert len(caught) == 69 and sum(where.startswith("in part") for where in caught) == 3


def test_files_that_the_page_names_exist():
    for name in re.findall(r"`(appliance/[\w/]+\.py)`", PAGE):
        assert (ROOT / name).is_file(), name


def test_the_probes_of_the_how_to_are_those_there_are():
    from appliance.preflight.measure import known_probes

    table = re.findall(r"^\| `([a-z-]+)` \| (\d+) s \|", (ROOT / "docs/preflight.md").read_text(), re.MULTILINE)
    assert {name: float(limit) for name, limit in table} == {p.name: p.limit_s for p in known_probes().values()}
